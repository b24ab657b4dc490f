package node

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

func held(t *testing.T, set *Set, key string) *dbadapter.Record {
	t.Helper()
	return must(set.Held([]byte(key)))
}

// A record that recedes is a conflict at each host; a later write of its key stands, which the host
// that let it recede had not heard of.
func TestRecede(t *testing.T) {
	const shard = 3
	c := newShardCrew(t, []placement.Shard{shard}, []placement.Shard{shard})
	for _, key := range []string{"lost", "written again"} {
		c.put(0, shard, key)
	}
	c.rounds(2)
	c.pass(time.Second)
	later := must(commit(c.set(1, shard).Write(draft("written again", "later"))))
	c.pass(time.Minute)
	for _, key := range []string{"lost", "written again"} {
		if done, err := c.set(0, shard).Recede(t.Context(), held(t, c.set(0, shard), key), 0); err != nil || !done {
			t.Fatalf("%s: %v, %v", key, done, err)
		}
		if r := held(t, c.set(0, shard), key); r == nil || !r.Deleted {
			t.Errorf("%s: it holds %+v", key, r)
		}
	}
	c.rounds(2)
	for i := range c.machines {
		set := c.set(i, shard)
		if r := held(t, set, "written again"); r == nil || r.Version != later {
			t.Errorf("%d: the later write is overtaken by %+v", i, r)
		}
		if r := held(t, set, "lost"); r != nil && !r.Deleted { // nil: it is collected
			t.Errorf("%d holds %+v", i, r)
		}
		listed := 0
		for k, err := range set.Store.Kept(t.Context()) {
			if must(k, err).Why == dbadapter.KeptConflict && string(k.Record.Key) == "lost" && string(k.Record.Value) == "value" {
				listed++
			}
		}
		if listed != 1 {
			t.Errorf("%d lists what has lost %d times", i, listed)
		}
	}
}

// A record that took the place of the one that is to recede stays, however late the tombstone is,
// which is later than all that this node has promised to hold.
func TestRecedeIsBoundToWhatIsHeld(t *testing.T) {
	const shard = 3
	c := newShardCrew(t, []placement.Shard{shard}, []placement.Shard{shard})
	c.put(0, shard, "k")
	set := c.set(0, shard)
	lost := held(t, set, "k")
	c.pass(time.Second)
	now := must(commit(set.Write(draft("k", "later"))))
	c.pass(time.Second)
	c.ns[0].updating.Lock()
	set.vouching.mark.Pledged = now.Clock + 1
	c.ns[0].updating.Unlock()
	if done, err := set.Recede(t.Context(), lost, 0); err != nil || done {
		t.Errorf("%v, %v", done, err)
	}
	if r := held(t, set, "k"); r == nil || r.Version != now {
		t.Errorf("it holds %+v", r)
	}
	if done, err := set.Recede(t.Context(), held(t, set, "k"), 0); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	if r := held(t, set, "k"); !r.Deleted || r.Version.Clock <= now.Clock+1 {
		t.Errorf("behind a promise it holds %+v", r)
	}
}
