package badgerkv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"

	"github.com/syncd-io/syncd/internal/durable"
)

// Badger makes a table as a sparse file, maps it, and copies the table there. Nothing of
// Badger's that could be told comes between; but it maps by unix.Mmap, which calls a variable.
// So the file gets its blocks there, before it is mapped: the copy cannot fail, whoever fills
// the disk meanwhile. TestTableWaitsForRoom fails where that is no longer so.

// mmapper is the head of the struct of that name in golang.org/x/sys/unix.
type mmapper struct {
	_    sync.Mutex
	_    map[*byte][]byte
	mmap func(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, error)
}

//go:linkname mapper golang.org/x/sys/unix.mapper
var mapper *mmapper

func init() {
	plain := mapper.mmap
	mapper.mmap = func(addr, length uintptr, prot, flags, fd int, offset int64) (uintptr, error) {
		if prot&unix.PROT_WRITE != 0 && flags&unix.MAP_SHARED != 0 {
			allocate(fd, int64(length))
		}
		return plain(addr, length, prot, flags, fd, offset)
	}
}

// allocate waits until a new table has its blocks, and leaves startRoom for the list of
// tables. It returns no error: Badger drops one of a compaction, and the table with it.
func allocate(fd int, length int64) {
	var s unix.Stat_t
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil || filepath.Ext(name) != ".sst" || unix.Fstat(fd, &s) != nil || s.Blocks > 0 {
		return
	}
	for {
		if free, err := durable.Free(filepath.Dir(name)); err != nil || free >= length+startRoom {
			err := unix.Fallocate(fd, 0, 0, length)
			if !durable.NoRoom(err) && !errors.Is(err, unix.EINTR) {
				return // also where the file system knows no such call
			}
		}
		time.Sleep(roomPause)
	}
}
