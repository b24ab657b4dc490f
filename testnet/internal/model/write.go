package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Told is what a writer is told of one record of its batch: its version once it
// is durable, or why it was not written. A node that dies first tells nothing.
type Told func(i int, version dbadapter.Version, err error)

// Write puts records in one transaction; only keys and values count.
func (n *Node) Write(records []dbadapter.Record, told Told) {
	n.request(len(records), told, func(p *process) { p.write(records, nil, told) })
}

// Delete deletes the record under a key, if there is one.
func (n *Node) Delete(key []byte, told Told) {
	n.request(1, told, func(p *process) { p.delete(key, told) })
}

// request hands what an application asks for to the process. It waits for one
// that stands still.
func (n *Node) request(records int, told Told, do func(*process)) {
	p := n.process
	if p == nil {
		refuseAll(records, told, ErrDown)
		return
	}
	p.now(func() { do(p) })
}

func refuseAll(records int, told Told, err error) {
	for i := range records {
		told(i, dbadapter.Version{}, err)
	}
}

// How long a commit waits for others to share its sync.
const (
	lingerLeast = 200 * time.Microsecond
	lingerMost  = 5 * time.Millisecond
)

func (p *process) write(records []dbadapter.Record, held *dbadapter.Version, told Told) {
	n := p.node
	refuse := func(err error) {
		n.cluster.Watch.Refused(n.id, err)
		refuseAll(len(records), told, err)
	}
	writes := make([]dbadapter.Write, len(records))
	for i, r := range records {
		at := p.clock.Read()
		if at.Time().Before(dbadapter.Epoch) {
			refuse(fmt.Errorf("%w: this machine's clock says %s", hlc.ErrOutOfBounds, at.Time()))
			return
		}
		r.Version = dbadapter.Version{Clock: dbadapter.Timestamp(at), Writer: n.writer, Incarnation: p.incarnation}
		hashed, err := dbadapter.Hash(n.cluster.keys.Hasher, r)
		if err != nil {
			refuse(err)
			return
		}
		if n.cluster.Signed {
			hashed.Signature = n.cluster.sign(n.id, &r)
		}
		writes[i] = dbadapter.Write{Record: hashed, If: held}
	}
	err := p.store.write(writes, func(outcomes []dbadapter.Outcome, err error) {
		if err != nil {
			refuse(err)
			return
		}
		for i, o := range outcomes {
			n.world.Note("written", n.id, int(o.Result), writes[i].Record.Key)
			if o.Result != dbadapter.Applied {
				told(i, dbadapter.Version{}, fmt.Errorf("%w: %q is held as %s", dbadapter.ErrConflict, writes[i].Record.Key, o.Held))
				continue
			}
			p.applied++
			n.cluster.Watch.Observed(n.id, &writes[i].Record.Record)
			told(i, writes[i].Record.Version, nil)
		}
	})
	if err != nil {
		refuse(err)
		return
	}
	if p.syncing {
		return
	}
	p.syncing = true
	p.writes++
	p.after(n.world.Between(lingerLeast, lingerMost, sim.ForLinger, uint64(n.id), n.starts, p.writes), func() {
		p.syncing = false
		p.flush()
	})
}

// flush syncs the disk. It has kept room for that.
func (p *process) flush() {
	if err := p.store.flush(); err != nil {
		panic(err)
	}
}

func (p *process) delete(key []byte, told Told) {
	p.flush() // so that who deletes sees what was written before
	snap, err := p.store.Snapshot()
	if err != nil {
		panic(err) // it is in memory, and open
	}
	defer snap.Close()
	r, err := snap.Get(key)
	switch {
	case errors.Is(err, dbadapter.ErrNotFound):
		told(0, dbadapter.Version{}, err)
	case err != nil:
		panic(err)
	case r.Deleted:
		told(0, dbadapter.Version{}, dbadapter.ErrDeleted)
	default:
		p.write([]dbadapter.Record{{Key: key, Deleted: true}}, &r.Version, told)
	}
}
