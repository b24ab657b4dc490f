// Package offline works on the data folder of a node that does not run.
//
//	Restore       makes a folder of a backup, which Node.Backup of package peer takes
//	Migrate       moves the records to another kind of store
//	Repair        gives the node a new store in the place of one that is damaged
//	NewIdentity   gives a copy of a node a key of its own
//
// Each holds the lock of the folder's store meanwhile, and ends with dbadapter.ErrLocked where a
// node runs in it. After an error or a crash the folder is as it was, or the next call goes on.
//
//	b, err := offline.Restore(ctx, "/mnt/backups", "/var/lib/notes", offline.RestoreOptions{})
//	n, err := peer.Open(ctx, peer.Config{Dir: "/var/lib/notes"})
//
// The errors are those of package peer under the same names.
package offline

import "fmt"

// named names in an error what was attempted.
func named(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}
