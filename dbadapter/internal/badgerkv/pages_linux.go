package badgerkv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mappedTables reads where the tables of a folder are mapped, by number. The kernel
// shows parts of a table that were advised differently one by one.
func mappedTables(dir string) map[uint64][]mapping {
	tables := map[uint64][]mapping{}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return tables
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return tables
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return tables
	}
	for line := range bytes.Lines(maps) {
		if id, m, ok := parseMapping(strings.TrimSuffix(string(line), "\n"), dir); ok {
			tables[id] = append(tables[id], m)
		}
	}
	return tables
}

// parseMapping reads a line of /proc/self/maps, such as
//
//	7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /var/lib/syncd/store/000042.sst
//
// ok is false if it is not a table's of this folder.
func parseMapping(line, dir string) (id uint64, m mapping, ok bool) {
	at := strings.IndexByte(line, '/')
	if at < 0 || filepath.Dir(line[at:]) != dir {
		return 0, m, false
	}
	if id, ok = parseTableName(filepath.Base(line[at:])); !ok {
		return 0, m, false
	}
	if n, err := fmt.Sscanf(line, "%x-%x ", &m.from, &m.to); n != 2 || err != nil || m.from >= m.to {
		return 0, m, false
	}
	return id, m, true
}

// adviseRandom and adviseNormal concern speed only: that the mapping may have
// been given up, and another one taken its place, does no harm.
func adviseRandom(m []mapping) { advise(m, unix.MADV_RANDOM) }
func adviseNormal(m []mapping) { advise(m, unix.MADV_NORMAL) }

// dropPages lets go of the pages of a mapped file. They stay in the kernel's cache,
// those that were written too. Of a mapping of another kind it would delete what is
// there: the caller holds the table.
func dropPages(m []mapping) { advise(m, unix.MADV_DONTNEED) }

// advise ignores a failure: the kernel may be told nothing.
func advise(mappings []mapping, advice uintptr) {
	for _, m := range mappings {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice)
	}
}

// mappedPages is how many bytes of mapped files this process holds, its program
// among them.
func mappedPages() (int64, bool) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	var size, resident, shared int64
	if n, _ := fmt.Sscan(string(b), &size, &resident, &shared); n != 3 {
		return 0, false
	}
	return shared * int64(os.Getpagesize()), true
}
