package badgerkv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTableWaitsForRoom maps a new table, as Badger does, on a disk that is full for now:
// once that is done it has all its blocks.
func TestTableWaitsForRoom(t *testing.T) {
	const size = 8 << 20
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("SKIPPED: %s mounts a disk, which only root may: %v", t.Name(), err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 12<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, tableName(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mapped := make(chan error)
	go func() {
		b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			err = unix.Munmap(b)
		}
		mapped <- err
	}()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := <-mapped; err != nil {
		t.Error(err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil || s.Blocks*512 < size {
		t.Errorf("it has %d bytes of blocks, %v", s.Blocks*512, err)
	}
}
