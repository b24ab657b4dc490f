package peer

import (
	"fmt"
	"os"
	"runtime"
)

// readPrivate reads a file that only its owner may read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no modes
		return nil, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it, and consider its content known",
			path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}
