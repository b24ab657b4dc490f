package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// committing are the keys that this node commits as one of their hosts, from before their versions are made until
// they are held. A record on a condition that other hosts are to hold must not be made beside them: it would have a
// later clock without having seen them, and what another node writes over it would count them as seen.
type committing struct {
	mu      sync.Mutex // guards what follows
	keys    map[string]int
	batches int // of any keys
}

// begin notes that drafts are being committed; end that they have been.
func (c *committing) begin(drafts []Draft) (end func()) {
	c.add(drafts, 1)
	return func() { c.add(drafts, -1) }
}

func (c *committing) add(drafts []Draft, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(drafts) != 1 {
		c.batches += n
		return
	}
	if c.keys == nil {
		c.keys = map[string]int{}
	}
	key := string(drafts[0].Record.Key)
	if c.keys[key] += n; c.keys[key] == 0 {
		delete(c.keys, key)
	}
}

func (c *committing) has(key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.batches > 0 || c.keys[string(key)] > 0
}

// note remembers a record that is to be handed to hosts, as Namespace.Note does, and reports whether it may be: one that
// rests on a condition not beside what this node, as a host, has written meanwhile, or is committing.
func (r *Remote) note(record, saw *dbadapter.Record, conditional bool, now time.Duration) bool {
	if r.ns.writes.note(record, saw, r.hosts, true, now) != nil {
		return false
	}
	if !conditional || !r.ns.commits.has(record.Key) && !r.unseenHere(record) {
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

// Landed notes that the caller of a write of this node waits for it no longer.
func (ns *Namespace) Landed(record *dbadapter.Record) { ns.writes.land(record) }

// HeldHere forgets a record that this node holds as one of its hosts: what it holds is looked at anyway.
func (ns *Namespace) HeldHere(record *dbadapter.Record) { ns.writes.heldHere(record) }
