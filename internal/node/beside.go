package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// keyCounts counts by keys.
type keyCounts struct {
	mu sync.Mutex // guards what follows
	of map[string]int
}

func (c *keyCounts) add(n int, keys ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	for _, key := range keys {
		if c.of[string(key)] += n; c.of[string(key)] == 0 {
			delete(c.of, string(key))
		}
	}
}

func (c *keyCounts) count(key []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[string(key)]
}

// commits notes that this node commits drafts as a host, from before their versions are made until they are held; end that it
// has. A record on a condition that other hosts are to hold must not be made beside them: it would have a later clock without
// having seen them, and what another node writes over it would count them as seen.
func (ns *Namespace) commits(drafts []Draft) (end func()) {
	if ns.rule == nil {
		return func() {} // its records go to no host by a request
	}
	keys := make([][]byte, len(drafts))
	for i := range drafts {
		keys[i] = drafts[i].Record.Key
	}
	return ns.commitsKeys(keys)
}

func (ns *Namespace) commitsKeys(keys [][]byte) (end func()) {
	ns.committing.add(1, keys...)
	return func() { ns.committing.add(-1, keys...) }
}

// note remembers a record that is to be handed to hosts, as Namespace.Note does, and reports whether it may be: one that
// rests on a condition not beside what this node, as a host, has written meanwhile, or is committing.
func (r *Remote) note(record, saw *dbadapter.Record, conditional bool, now time.Duration) bool {
	if r.ns.Note(r, record, saw, now) != nil {
		return false
	}
	if !conditional || r.ns.committing.count(record.Key) == 0 && !r.unseenHere(record) {
		return true
	}
	r.ns.Withdraw(r, record, now)
	return false
}

// unseenHere reports whether this node holds a write of its own that a record has not seen, or may.
func (r *Remote) unseenHere(record *dbadapter.Record) bool {
	set := r.ns.held(r.shard)
	if set == nil {
		return false
	}
	held, err := set.Held(record.Key)
	return err != nil || held != nil && held.Version.Writer == r.ns.self && !follows(record, held)
}

// Await notes that a caller of this node waits for a write of a key, of which no host may have heard; Landed that it does so no
// longer.
func (ns *Namespace) Await(key []byte) { ns.awaited.add(1, key) }

// Landed: see Await.
func (ns *Namespace) Landed(key []byte) { ns.awaited.add(-1, key) }

// HeldHere forgets a record that this node holds as one of its hosts: what it holds is looked at anyway.
func (ns *Namespace) HeldHere(record *dbadapter.Record) { ns.writes.heldHere(record) }
