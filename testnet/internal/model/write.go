package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Told is called with the outcome of one record of a batch: its version when it
// is durable, or the reason of a refusal. A node that dies first does not call it.
type Told func(i int, version dbadapter.Version, err error)

// Write puts records in one transaction; only keys, values and times to live count.
func (n *Node) Write(drafts []node.Draft, told Told) {
	n.ask(len(drafts), told, func(p *process) (*node.Attempt, error) { return p.set.Write(drafts...) })
}

// Delete deletes the record under a key, if there is one.
func (n *Node) Delete(key []byte, told Told) {
	n.ask(1, told, func(p *process) (*node.Attempt, error) {
		p.flush() // so that a writer that deletes sees what it wrote before
		return p.set.Delete(key)
	})
}

// ask hands an application's request to the process.
func (n *Node) ask(records int, told Told, begin func(*process) (*node.Attempt, error)) {
	n.do(func(p *process) error {
		a, err := begin(p)
		if err == nil {
			p.shard.carry(a, records, told)
		}
		return err
	}, func(err error) {
		for i := range records {
			told(i, dbadapter.Version{}, err)
		}
	})
}

// How long a commit waits for others to share its sync.
const (
	lingerLeast = 200 * time.Microsecond
	lingerMost  = 5 * time.Millisecond
)

// carry writes an attempt to the disk. The process has one line of commits, so that it
// commits versions in the order in which it made them. Package peer needs Attempt.Hold
// for that.
func (sh *shard) carry(a *node.Attempt, records int, told Told) {
	p := sh.process
	n := p.node
	end := func(outcomes []dbadapter.Outcome, err error) {
		if err != nil {
			n.cluster.Watch.Refused(n.number, err)
		}
		for i := range records {
			if err != nil && (len(outcomes) == 0 || outcomes[i].Result != dbadapter.Applied) {
				told(i, dbadapter.Version{}, err)
			} else { // of a batch, the others are written
				told(i, a.Version(i), nil)
			}
		}
	}
	writes, err := a.Writes()
	if err != nil {
		end(nil, err)
		return
	}
	err = sh.store.write(writes, func(outcomes []dbadapter.Outcome, err error) {
		for i, o := range outcomes {
			n.world.Note("written", n.number, int(o.Result), writes[i].Record.Key)
		}
		again, err := a.Judge(outcomes, err)
		if again {
			p.now(func() { sh.carry(a, records, told) })
			return
		}
		end(outcomes, err)
	})
	if err != nil {
		end(nil, err)
		return
	}
	p.linger()
}

// linger schedules the next sync of the disk.
func (p *process) linger() {
	if p.syncing {
		return
	}
	p.syncing = true
	p.writes++
	n := p.node
	p.after(n.world.Between(lingerLeast, lingerMost, sim.ForLinger, uint64(n.number), n.starts, p.writes), func() {
		p.syncing = false
		p.flush()
	})
}

// flush syncs the disk, which may be full.
func (p *process) flush() {
	for _, sh := range p.shards {
		sh.store.flush()
	}
}

// Restamp gives what the node wrote too far ahead of its clock a version of now.
func (n *Node) Restamp() {
	n.joinedDo(func(p *process) error {
		p.flush()
		p.restamps++
		restamped, err := p.ns.Restamp(context.Background())
		n.world.Note("restamped", n.number, restamped, nil)
		return err
	})
}

// Import writes one item, which may be dated.
func (n *Node) Import(item node.Item, told Told) {
	n.do(func(p *process) error {
		version, err := p.importOne(&item)
		if err == nil {
			told(0, version, nil)
		}
		return err
	}, func(err error) { told(0, dbadapter.Version{}, err) })
}

// importOne returns the version of the record written, or the zero version if the
// item changed nothing.
func (p *process) importOne(item *node.Item) (version dbadapter.Version, err error) {
	im := p.set.Import()
	defer im.End()
	if err := im.Check(item); err != nil {
		return version, err
	}
	im.Add(item)
	p.flush()
	defer im.Hold()()
	b := im.Cut()
	writes, err := b.Writes()
	if err != nil || len(writes) == 0 {
		return version, err
	}
	outcomes, err := p.store.Apply(context.Background(), writes)
	if err != nil {
		return version, err
	}
	b.Judge(outcomes)
	if im.Result.Written == 1 {
		version = writes[0].Record.Version
	}
	return version, nil
}

// Rejected lists what the process has declined of what others offered.
func (n *Node) Rejected() []refusals.Rejection {
	if n.process == nil || n.process.ns == nil {
		return nil
	}
	return n.process.set.Rejected()
}
