package badgerkv

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// sumSize is the length of an entry's checksum.
const sumSize = 4

// logSource is what a log holds, sorted.
type logSource struct{ rest []version }

func (l *logSource) close() {}

func (l *logSource) next() (*version, error) {
	if len(l.rest) == 0 {
		return nil, nil
	}
	first := l.rest[0]
	l.rest = l.rest[1:]
	return &first, nil
}

// log takes up the whole entries of a log. It leaves out those of an unfinished commit at
// the end, which was never acknowledged. Where other bytes stand between two entries, any
// key may have had an entry there.
func (v *salvager) log(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b = b[:min(len(b), len(bytes.TrimRight(b, "\x00"))+sumSize)] // a checksum may end with zeros
	var all []version
	finished, skipped := 0, 0
	for at := logHeader; at < len(b); {
		e, err := readLogged(b, at)
		if err != nil {
			skipped, at = skipped+1, at+1
			continue
		}
		all = append(all, version{e.key, e.time, e.deleted, e.value})
		if at = e.end; e.fin {
			finished = len(all)
			if skipped > 0 {
				v.gap(nil, nil, "the file %s before %d", filepath.Base(path), at)
				skipped = 0
			}
		}
	}
	if probeLog(path) != nil && skipped > sumSize {
		v.gap(nil, nil, "the end of the file %s", filepath.Base(path))
	}
	all = all[:finished]
	slices.SortStableFunc(all, func(a, b version) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.time, a.time))
	})
	return v.add(&logSource{all})
}
