package badgerkv

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Salvage reads the tables and the logs without Badger, which takes what a damaged
// block held for absent, cuts a damaged log short, and may end the process. In a
// damaged block most entries are as they were: those whose own checksum holds are
// taken, and what lies between them is a gap. A table whose index is damaged is not
// read at all, and its gap is the whole range of keys.
func (e Engine) Salvage(ctx context.Context, dir string, s kv.Salvage) ([]kv.Gap, error) {
	v := &salvager{sound: s.Sound}
	defer v.close()
	tables, err := v.tablesOf(e, dir, s.Closed)
	if err != nil {
		return nil, err
	}
	for _, id := range tables {
		if err := v.table(dir, id); err != nil {
			return nil, err
		}
	}
	logs, err := durable.Files(dir, "*.mem")
	if err != nil {
		return nil, err
	}
	for _, path := range logs {
		if err := v.log(path); err != nil {
			return nil, err
		}
	}
	if err := v.merge(ctx, s.Entry); err != nil {
		return nil, err
	}
	return v.gaps, nil
}

// tablesOf lists the tables; those in the folder, if Badger's own list is damaged. A crash
// may leave one there that is merged already. It holds nothing that is newer, but what was
// removed since may come back, so that the gap is the whole range of keys. closed: a list
// that ends in the midst of a change was not torn, but is damaged.
func (v *salvager) tablesOf(e Engine, dir string, closed bool) (ids []uint64, err error) {
	list, bad := e.probeManifest(dir, closed)
	if bad == nil {
		for id := range list {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids, nil
	}
	v.gap(nil, nil, "%v", bad)
	files, err := durable.Files(dir, "*.sst")
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if id, ok := parseTableFile(filepath.Base(path)); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// version is what Badger holds of a key as of a commit.
type version struct {
	key     []byte
	time    uint64
	deleted bool
	value   []byte
}

// source is a row of versions, by key and, of one key, the newest first.
type source interface {
	// next is the next version, nil at the end.
	next() (*version, error)
	close()
}

// salvager merges the sources.
type salvager struct {
	sound func(key, value []byte) bool
	gaps  []kv.Gap
	heads heads
	all   []source
}

type head struct {
	*version
	from source
}

type heads []head

func (h heads) Len() int { return len(h) }
func (h heads) Less(a, b int) bool {
	if order := bytes.Compare(h[a].key, h[b].key); order != 0 {
		return order < 0
	}
	return h[a].time > h[b].time
}
func (h heads) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *heads) Push(x any)   { *h = append(*h, x.(head)) }
func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// gap notes keys of which something may be lost.
func (v *salvager) gap(from, to []byte, where string, args ...any) {
	v.gaps = append(v.gaps, kv.Gap{Where: fmt.Sprintf(where, args...), From: from, To: to})
}

// add takes a source up, unless it is at its end.
func (v *salvager) add(s source) error {
	v.all = append(v.all, s)
	first, err := s.next()
	if first != nil {
		heap.Push(&v.heads, head{first, s})
	}
	return err
}

func (v *salvager) close() {
	for _, s := range v.all {
		s.close()
	}
}

// badgersOwn begins the keys that Badger keeps for itself.
var badgersOwn = []byte("!badger!")

func (v *salvager) merge(ctx context.Context, entry func(key, value []byte) error) error {
	var last []byte
	seen := false
	for n := 0; len(v.heads) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := v.heads[0].version
		following, err := v.heads[0].from.next()
		if err != nil {
			return err
		}
		if following != nil {
			v.heads[0].version = following
			heap.Fix(&v.heads, 0)
		} else {
			heap.Pop(&v.heads)
		}
		if seen && bytes.Equal(at.key, last) {
			continue // it is older
		}
		last, seen = at.key, true
		if at.deleted || bytes.HasPrefix(at.key, badgersOwn) {
			continue
		}
		if err := entry(at.key, at.value); err != nil {
			return err
		}
	}
	return nil
}
