package damage

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

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/machine"
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

// Between two looks at the troubles there is lookPause. After an error of the store, and
// while there is a trouble, it is leastLookPause: a look costs a question to the store and
// the opening of a file.
const (
	lookPause      = 5 * time.Second
	leastLookPause = time.Second
)

// Node is what Health asks of its node.
type Node struct {
	Log *slog.Logger
	Now func() time.Time
	// Able is nil where the store works now.
	Able func(context.Context) error
	// Namespaces are those that are served, Unserved the others, by name.
	Namespaces func() []Namespace
	Unserved   func() []status.Unserved
}

// Namespace is one that is served.
type Namespace struct {
	ID   dbadapter.NamespaceID
	Name string
	// Recovers: the node may lack records of it that it is to hold.
	Recovers bool
}

// Health is the troubles that the last look has seen.
type Health struct {
	node Node
	book *Book
	hint chan struct{} // holds a token when there is something to see

	mu  sync.Mutex // guards what follows
	all []status.Trouble
}

// NewHealth makes the health of a node with no troubles; Look sees them.
func NewHealth(n Node, book *Book) *Health {
	return &Health{node: n, book: book, hint: make(chan struct{}, 1)}
}

// Troubles are the states in which the node cannot do its work now, some seconds old at
// most; none: it can.
func (h *Health) Troubles() []status.Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]status.Trouble{}, h.all...)
}

// Unable are the kinds of the troubles, as other members receive them.
func (h *Health) Unable() (bits byte) {
	all := h.Troubles()
	for i, k := range troubleKinds {
		if slices.ContainsFunc(all, func(c status.Trouble) bool { return c.Kind == k.kind }) {
			bits |= 1 << i
		}
	}
	return bits
}

// AllKinds are all kinds as Unable gives them.
const AllKinds = ^byte(0)

// Kinds reads what Unable has given; of bits that are unknown here nothing is known.
func Kinds(bits byte) (kinds []status.TroubleKind) {
	for i, k := range troubleKinds {
		if bits&(1<<i) != 0 {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

// Hint takes an error of the store: most likely there is something to see.
func (h *Health) Hint(err error) {
	if err != nil && !isAnyOf(err, dbadapter.ErrNotFound, dbadapter.ErrDeleted, dbadapter.ErrExpired) {
		machine.Wake(h.hint)
	}
}

// Run looks at the troubles until the context is over.
func (h *Health) Run(ctx context.Context) {
	for {
		if machine.Sleep(ctx, leastLookPause) != nil {
			return
		}
		if len(h.Troubles()) == 0 {
			select {
			case <-h.hint:
			case <-time.After(lookPause - leastLookPause):
			case <-ctx.Done():
				return
			}
		}
		h.Look(ctx)
	}
}

// Look sees which troubles there are, and logs those that have begun or ended.
func (h *Health) Look(ctx context.Context) {
	causes := h.Causes(ctx)
	if ctx.Err() != nil {
		return
	}
	before, now, log := h.Troubles(), h.node.Now(), h.node.Log
	var all []status.Trouble
	for _, k := range troubleKinds {
		cause, is := causes[k.kind]
		i := slices.IndexFunc(before, func(c status.Trouble) bool { return c.Kind == k.kind })
		switch {
		case is && i < 0:
			all = append(all, status.Trouble{Kind: k.kind, Cause: cause, Since: now.UTC()})
			log.Error("cannot work: "+k.text, slog.String("cause", cause))
		case is:
			all = append(all, status.Trouble{Kind: k.kind, Cause: cause, Since: before[i].Since})
		case i >= 0:
			log.Info("works again; it is over that "+k.text, slog.Duration("after", now.Sub(before[i].Since)))
		}
	}
	h.mu.Lock()
	h.all = all
	h.mu.Unlock()
}

// Causes are the causes of the troubles that there are.
func (h *Health) Causes(ctx context.Context) map[status.TroubleKind]string {
	now := map[status.TroubleKind]string{}
	ctx, cancel := context.WithTimeout(ctx, 2*lookPause)
	defer cancel()
	if err := h.node.Able(ctx); err != nil {
		now[troubleOf(err)] = clip(err.Error())
	}
	if f, err := os.Open(os.DevNull); err == nil {
		f.Close()
	} else if troubleOf(err) == status.NoFiles {
		now[status.NoFiles] = err.Error() + ": close connections, or let the process open more (ulimit -n)"
	}
	var damaged, files, recovering []string
	if d := h.book.Of(dbadapter.NamespaceID{}); d != nil {
		damaged = append(damaged, d.Found[0])
	}
	for _, u := range h.node.Unserved() {
		if u.Why != "" { // which says what to do: verify repairs records
			files = append(files, u.Why)
			continue
		}
		damaged = append(damaged, u.Name+" is not served")
	}
	for _, ns := range h.node.Namespaces() {
		if d := h.book.Of(ns.ID); d != nil {
			damaged = append(damaged, fmt.Sprintf("%s: %s", ns.Name, d.Found[0]))
		}
		if ns.Recovers {
			recovering = append(recovering, ns.Name)
		}
	}
	if len(damaged) > 0 {
		files = append(files, clip(strings.Join(damaged, "; "))+": run syncd verify, and syncd verify --repair")
	}
	if len(files) > 0 {
		now[status.Damaged] = strings.Join(files[:min(len(files), 8)], "; ")
	}
	if len(recovering) > 0 {
		now[status.Recovering] = clip(strings.Join(recovering, ", ")) + ": until a sync has proved each equal to another member (syncd sync)"
	}
	return now
}

// troubleOf is that of which an error of the store speaks.
func troubleOf(err error) status.TroubleKind {
	switch {
	case isAnyOf(err, syscall.EMFILE, syscall.ENFILE): // which is ErrAway, too, as it ends by itself
		return status.NoFiles
	case isAnyOf(err, syscall.EROFS, syscall.EIO, fs.ErrPermission):
		return status.StoreFails
	case isAnyOf(err, dbadapter.ErrAway):
		return status.Away
	case isAnyOf(err, dbadapter.ErrLimit), durable.NoRoom(err):
		return status.DiskFull
	}
	return status.StoreFails
}

func isAnyOf(err error, some ...error) bool {
	return slices.ContainsFunc(some, func(one error) bool { return errors.Is(err, one) })
}
