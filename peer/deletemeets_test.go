package peer

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
)

// Of a put and a deletion on one version, by placement writer and at one moment, no entry is left that leads to no record: the key
// can be read at once.
func TestDeletionMeetsPut(t *testing.T) {
	t.Parallel()
	putIf := func(ns *Namespace, key []byte, first dbadapter.Version) error {
		_, err := ns.PutIf(t.Context(), key, []byte("second"), first)
		return err
	}
	deleteIf := func(ns *Namespace, key []byte, first dbadapter.Version) error {
		_, err := ns.DeleteIf(t.Context(), key, first)
		return err
	}
	for name, write := range map[string]struct {
		put, deletes func(ns *Namespace, key []byte, first dbadapter.Version) error
		both         bool // may be acknowledged
		freed        bool // the key is deleted before
	}{
		"on a version": {
			putIf,
			deleteIf,
			false, false,
		},
		"on the version of a deletion": { // the two go to two shards
			putIf,
			deleteIf,
			false, true,
		},
		"two on the version of a deletion": {
			deleteIf,
			deleteIf,
			false, true,
		},
		"without a condition": {
			func(ns *Namespace, key []byte, _ dbadapter.Version) error {
				_, err := ns.Put(t.Context(), key, []byte("second"))
				return err
			},
			func(ns *Namespace, key []byte, _ dbadapter.Version) error {
				_, err := ns.Delete(t.Context(), key)
				return err
			},
			true, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			ended := map[int]string{}
			var keys []string
			for round := range 60 {
				key := fmt.Sprint("met by a deletion ", round)
				first, err := c.put(round%4, key, "first", route.All)
				c.must(err)
				c.follow()
				on := first.Version
				if write.freed {
					on, err = c.spaces[round%4].DeleteIf(t.Context(), []byte(key), on, Acks(AckAll))
					c.must(err)
					c.follow()
				}
				keys = append(keys, key)
				var all sync.WaitGroup
				var put, deleted error
				all.Go(func() { put = write.put(c.spaces[(round+1)%4], []byte(key), on) })
				all.Go(func() { deleted = write.deletes(c.spaces[(round+2)%4], []byte(key), on) })
				all.Wait()
				switch {
				case !write.both && put == nil && deleted == nil:
					t.Errorf("%q: both are acknowledged", key)
				case !write.freed && errors.Is(put, ErrConflict) && errors.Is(deleted, ErrUnconfirmed):
					t.Errorf("%q: the deletion stands, and is not acknowledged: %v", key, deleted)
				case write.both && (put != nil || deleted != nil):
					t.Errorf("%q: %v; %v", key, put, deleted)
				}
				ended[round] = fmt.Sprint(put, "; ", deleted)
			}
			for range 3 {
				c.round()
				c.follow()
			}
			for round, key := range keys {
				for i, ns := range c.spaces {
					if _, err := ns.Get(t.Context(), []byte(key)); err != nil && !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrNotFound) {
						t.Errorf("%q at node %d: %v (%s)", key, i, err, ended[round])
						break
					}
				}
			}
		})
	}
}
