package durable

import "syscall"

// leastFiles is how many files must be left to make: a database makes dozens at a time.
const leastFiles = 64

// Free is the room that the file system of dir has for this user, in bytes: none where it
// can make no more files, though there is room for their content. It has as many files as
// it has room for, where it does not count them.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	if s.Files > 0 && s.Ffree < leastFiles {
		return 0, nil
	}
	return int64(s.Bavail) * s.Bsize, nil
}
