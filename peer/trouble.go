package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
)

// troubleKinds are all, with what the log says of each. Their order is that of
// wire.StatusAnswer.Unable, from the lowest bit on.
var troubleKinds = []struct {
	kind status.TroubleKind
	text string
}{
	{status.Away, "the database of the store is away"},
	{status.DiskFull, "the disk is full, and writes are refused"},
	{status.NoFiles, "the system gives this process no more files"},
	{status.StoreFails, "the store does not work"},
	{status.Damaged, "the store is damaged"},
	{status.Recovering, "records may be missing that this node is to hold"},
}

// Between two looks at the troubles there is troublePause. After an error of the store, and
// while there is a trouble, it is leastTroublePause: a look costs a question to the store and
// the opening of a file.
const (
	troublePause      = 5 * time.Second
	leastTroublePause = time.Second
)

// troubles are those that were seen at the last look.
type troubles struct {
	hinted chan struct{} // holds a token when there is something to see

	mu  sync.Mutex // guards what follows
	all []status.Trouble
}

// Troubles are the states in which the node cannot do its work now, some seconds old at
// most; none: it can.
func (n *Node) Troubles() []status.Trouble {
	n.health.mu.Lock()
	defer n.health.mu.Unlock()
	return append([]status.Trouble{}, n.health.all...)
}

// unable are the kinds of the troubles, as other members receive them.
func (n *Node) unable() (bits byte) {
	all := n.Troubles()
	for i, k := range troubleKinds {
		if slices.ContainsFunc(all, func(c status.Trouble) bool { return c.Kind == k.kind }) {
			bits |= 1 << i
		}
	}
	return bits
}

// kindsOf reads what unable has told; of bits that are unknown here nothing is known.
func kindsOf(bits byte) (kinds []status.TroubleKind) {
	for i, k := range troubleKinds {
		if bits&(1<<i) != 0 {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

// hint takes an error of the store: most likely there is something to see.
func (c *troubles) hint(err error) {
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrExpired) {
		wake(c.hinted)
	}
}

// watchTroubles looks at the troubles until the node closes.
func (n *Node) watchTroubles() {
	defer n.gate.leave()
	for sleep(n.ctx, leastTroublePause) {
		if len(n.Troubles()) == 0 {
			select {
			case <-n.health.hinted:
			case <-time.After(troublePause - leastTroublePause):
			case <-n.ctx.Done():
				return
			}
		}
		n.lookAtTroubles()
	}
}

// lookAtTroubles sees which troubles there are, and logs those that have begun or ended.
func (n *Node) lookAtTroubles() {
	now := n.seeTroubles()
	if n.ctx.Err() != nil {
		return
	}
	before := n.Troubles()
	var all []status.Trouble
	for _, k := range troubleKinds {
		cause, is := now[k.kind]
		i := slices.IndexFunc(before, func(c status.Trouble) bool { return c.Kind == k.kind })
		switch {
		case is && i < 0:
			all = append(all, status.Trouble{Kind: k.kind, Cause: cause, Since: n.now().UTC()})
			n.log.Error("cannot work: "+k.text, slog.String("cause", cause))
		case is:
			all = append(all, status.Trouble{Kind: k.kind, Cause: cause, Since: before[i].Since})
		case i >= 0:
			n.log.Info("works again; it is over that "+k.text, slog.Duration("after", n.now().Sub(before[i].Since)))
		}
	}
	n.health.mu.Lock()
	n.health.all = all
	n.health.mu.Unlock()
}

// seeTroubles are the causes of the troubles that there are.
func (n *Node) seeTroubles() map[status.TroubleKind]string {
	now := map[status.TroubleKind]string{}
	ctx, cancel := context.WithTimeout(n.ctx, 2*troublePause)
	defer cancel()
	if err := n.able(ctx); err != nil {
		now[troubleOf(err)] = clipText(err.Error())
	}
	if f, err := os.Open(os.DevNull); err == nil {
		f.Close()
	} else if troubleOf(err) == status.NoFiles {
		now[status.NoFiles] = err.Error() + ": close connections, or let the process open more (ulimit -n)"
	}
	var damaged, files, recovering []string
	if d := n.Damage(); d != nil {
		damaged = append(damaged, d.Found[0])
	}
	for _, u := range n.Unserved() {
		if u.Why != "" { // which says what to do: verify repairs records
			files = append(files, u.Why)
			continue
		}
		damaged = append(damaged, u.Name+" is not served")
	}
	for _, ns := range n.Namespaces() {
		if d := n.damage.of(ns.id); d != nil {
			damaged = append(damaged, fmt.Sprintf("%s: %s", ns.Name(), d.Found[0]))
		}
		if sets := ns.core.Sets(); ns.core.Rule() == nil && ns.core.Outside() == nil && slices.ContainsFunc(sets, (*node.Set).Recovers) {
			recovering = append(recovering, ns.Name())
		}
	}
	if len(damaged) > 0 {
		files = append(files, clipText(strings.Join(damaged, "; "))+": run syncd verify, and syncd verify --repair")
	}
	if len(files) > 0 {
		now[status.Damaged] = strings.Join(files[:min(len(files), 8)], "; ")
	}
	if len(recovering) > 0 {
		now[status.Recovering] = clipText(strings.Join(recovering, ", ")) + ": until a sync has proved each equal to another member (syncd sync)"
	}
	return now
}

// troubleOf is that of which an error of the store speaks.
func troubleOf(err error) status.TroubleKind {
	is := func(some ...error) bool {
		return slices.ContainsFunc(some, func(one error) bool { return errors.Is(err, one) })
	}
	switch {
	case is(syscall.EMFILE, syscall.ENFILE): // which is ErrAway, too, as it ends by itself
		return status.NoFiles
	case is(syscall.EROFS, syscall.EIO, fs.ErrPermission):
		return status.StoreFails
	case is(ErrAway):
		return status.Away
	case is(ErrLimit), durable.NoRoom(err):
		return status.DiskFull
	}
	return status.StoreFails
}
