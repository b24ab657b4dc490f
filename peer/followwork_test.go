package peer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// hungry asks for work while an error of the work before is logged: when that is over, and what has run
// it is not.
type hungry struct {
	slog.Handler
	ns    *Namespace
	asked chan struct{}
}

func (h hungry) Enabled(context.Context, slog.Level) bool {
	h.ns.workDue()
	close(h.asked)
	return false
}

// fullDisk is full once.
type fullDisk struct {
	copies
	writes int
}

func (d *fullDisk) Write(name string, data []byte) error {
	if d.writes++; d.writes == 1 {
		return errors.New("the disk is full")
	}
	return d.copies.Write(name, data)
}

// A piece of work that is asked for at the moment at which the one before ends is done, too: one that
// was given out and not done would be the last one, and the node would be sure of nothing any more.
func TestWorkIsDone(t *testing.T) {
	ns := newLocatedCluster(t, 3, placement.Hash).spaces[0]
	disk := &fullDisk{copies: copies{files: map[string][]byte{}}}
	l, err := directory.New(directory.Config{Shards: 1, Disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	const id = node.ID("a host")
	host := directory.NewHost(1, 7)
	host.SetLayout(1)
	host.Open(0, func(func(dbadapter.Index, directory.Code) bool) {})
	l.SetHosts(1, map[placement.Shard][]node.ID{0: {id}})
	changes := 0
	change := func(is directory.Code) { // as much as there is work for
		t.Helper()
		changes++
		for i := range dbadapter.Index(1100) {
			host.Set(0, i, is)
		}
		now := time.Duration(changes) * time.Second
		turn := l.Follow(id, false)
		if err := turn.Answered(host.News(turn.Next(now).(*directory.Poll)), now); err != nil {
			t.Fatal(err)
		}
	}

	log, gate, asked := ns.node.log, ns.gate, make(chan struct{})
	defer func() { ns.node.log, ns.gate = log, gate }()
	ns.follows.locator, ns.node.log, ns.gate = l, slog.New(hungry{slog.DiscardHandler, ns, asked}), newGate()
	change(directory.Gone)
	change(0)
	ns.workDue()
	<-asked
	ns.gate.close()
	<-ns.gate.empty // what was given out is done
	if change(directory.Gone); l.Work() == nil {
		t.Errorf("%d writes, no work is under way, and the locator gives out no other", disk.writes)
	}
}
