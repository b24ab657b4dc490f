package bfield

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogVersion: the log of another version is refused by an error that names both, even
// if its header is shorter.
func TestLogVersion(t *testing.T) {
	for _, size := range []int{len(logMagic), logHeader, logHeader + 100} {
		path := filepath.Join(t.TempDir(), "log")
		data := make([]byte, size)
		copy(data, logMagic)
		data[len(logMagic)-1] = 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenFileLog(path, 7)
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "log of version 1, where version 2 is read") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
