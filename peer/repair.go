package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// Repair is what Namespace.Repair has found and done.
type Repair struct {
	// Verification is that of what is there now.
	Verification
	// Damage are the damaged places of the store that were left behind, by file.
	Damage []string
	// Regained is how many records came from members.
	Regained int64
	// From are the members that were synced with.
	From []ID
	// Lost is what no member that could be reached has given back; nil if nothing is
	// missing.
	Lost *Lost
}

// Lost is what the node held, and lacks since damage to its store was repaired.
type Lost struct {
	// Keys are those of missing records, 1,024 of them at most.
	Keys [][]byte
	// Unnamed is how many more were missing when it was found; -1 if that is not known.
	// It stays until AcceptLoss: no key tells whether members gave them back.
	Unnamed int64
	// Control: the list of members, or what members say of themselves, lacks something
	// until the next sync.
	Control bool
	// Older: records may be older ones than were held, until the next sync.
	Older bool
	// SetAside is how many records were set aside since they may be older ones (see
	// Rejected), and Kept how many entries of the lists of what was kept are gone.
	SetAside, Kept int
	// At is when it was found.
	At time.Time
}

// Lost is what the node held, and lacks since damage to its store was repaired, as far
// as members did not give it back; nil if it lacks nothing. It stays until AcceptLoss:
// what no member held is gone.
func (ns *Namespace) Lost() *Lost { return lostOf(ns.core.Lost()) }

func lostOf(l *node.Lost) *Lost {
	if l == nil {
		return nil
	}
	return &Lost{l.Keys, l.Unnamed, l.Control, l.Older, l.SetAside, l.Kept, time.UnixMilli(l.At).UTC()}
}

// missing is how many records that is; -1 if it is not known.
func (l *Lost) missing() int64 {
	switch {
	case l == nil:
		return 0
	case l.Unnamed < 0:
		return -1
	}
	return int64(len(l.Keys)) + l.Unnamed
}

// AcceptLoss ends the list of what is lost.
func (ns *Namespace) AcceptLoss() error {
	if err := ns.enter("accept what is lost"); err != nil {
		return err
	}
	defer ns.gate.leave()
	return ns.core.AcceptLoss()
}

// Repair verifies the namespace. Where that finds damage on the disk, the files of the
// store are made anew without it: writes wait meanwhile, reads of all namespaces fail
// (ErrAway), and what is missing then is named and logged. Each namespace of the store
// is one that was restored from a copy from then on. Repair then syncs with the members
// that it can reach, in turn, until they have given back what is missing, and verifies
// once more. What they did not give back is in Lost, and stays there.
//
// ErrCorrupt: it is damaged, and this kind of store, or this damage, cannot be repaired.
func (ns *Namespace) Repair(ctx context.Context) (r Repair, err error) {
	err = ns.look(ctx, "repair", func(ctx context.Context) error { return ns.repair(ctx, &r) })
	return r, err
}

func (ns *Namespace) repair(ctx context.Context, r *Repair) error {
	err := ns.verify(ctx, &r.Verification)
	if errors.Is(err, ErrCorrupt) {
		if r.Damage, err = ns.node.salvage(ctx, err); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if ns.core.Lost() != nil {
		if err := ns.regain(ctx, r, &regaining{}); err != nil {
			return err
		}
	}
	r.Lost = ns.Lost()
	r.Verification = Verification{}
	return ns.verify(ctx, &r.Verification)
}

// regaining is which members were synced with since the last loss.
type regaining struct {
	losses uint64 // how many there were then
	from   map[ID]bool
}

// note notes a sync with a member that began after so many losses.
func (g *regaining) note(id ID, losses uint64) {
	if g.losses != losses || g.from == nil {
		g.losses, g.from = losses, map[ID]bool{}
	}
	g.from[id] = true
}

func (g *regaining) has(id ID, losses uint64) bool { return g.losses == losses && g.from[id] }

// regain syncs with members that were not asked yet, until they have given back all that
// members can.
func (ns *Namespace) regain(ctx context.Context, r *Repair, of *regaining) error {
	n := ns.node
	for _, m := range ns.core.Members().Active() {
		id := ID(m.ID)
		_, losses := ns.core.Losses() // before the sync, which may have seen none after it
		if id == n.self.id || !n.known(id) || of.has(id, losses) {
			continue
		}
		report, err := ns.Sync(ctx, id, SyncOptions{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Regained += int64(report.Applied)
		if failed := ns.core.Regain(); failed != nil {
			return failed
		}
		if err != nil {
			n.log.Warn("a member could not be asked for what is lost", logNamespace(ns), logPeer(id), logError(err))
			continue
		}
		r.From = append(r.From, id)
		of.note(id, losses)
		if !ns.core.Lost().Regainable() {
			return nil
		}
	}
	return ns.core.Regain() // other syncs may have brought something
}

// salvage makes the files of the store anew, without what is damaged. Before that, all
// namespaces are made such as may lack something, durably.
func (n *Node) salvage(ctx context.Context, found error) (damage []string, err error) {
	n.changing.Lock() // no namespace comes or goes
	defer n.changing.Unlock()
	store, ok := n.store.(dbadapter.Salvager)
	if !ok {
		return nil, fmt.Errorf("%w (this kind of store cannot be repaired here)", found)
	}
	mark := n.damage.mark()
	n.log.Error("the store is damaged: its files are made anew without what is; writes wait meanwhile", logError(found))
	open := n.Namespaces()
	for _, ns := range open {
		if err := ns.core.MayLack(); err != nil {
			return nil, err
		}
	}
	known := map[dbadapter.NamespaceID]dbadapter.Hasher{}
	for _, u := range n.shelved() {
		if err := u.mayLack(); err != nil {
			return nil, fmt.Errorf("%w; that comes first: %w", found, err)
		}
		for _, keys := range u.parts() {
			known[keys.ID] = keys.Hasher
		}
	}
	var keep func(dir string) error
	if n.repairs { // no person was asked to keep a copy
		keep = keepDamaged(n.dir, n.log)
	}
	done, err := store.Salvage(ctx, known, keep)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, &hindered{errors.Join(found, err)}
	} else if err != nil {
		return nil, errors.Join(found, err)
	}
	failed := n.damage.repaired(mark)
	for _, ns := range open {
		data, control := lossesOf(ns.parts(), done)
		ns.logLost(&data, &control, done.Older)
		ranges, err := ns.core.Salvaged(context.WithoutCancel(ctx), data, control, done.Older)
		if failed = errors.Join(failed, err); ranges > 0 {
			n.log.Error("ranges of the namespace lack records", logNamespace(ns), slog.Int("ranges", ranges), slog.Int("of", dbadapter.Ranges))
		}
	}
	return done.Damage, errors.Join(failed, n.serveAgain(context.WithoutCancel(ctx), done))
}

// logLost says what a salvage has left a namespace without. The keys are data, and are
// not logged.
func (ns *Namespace) logLost(data, control *dbadapter.Loss, older bool) {
	if !older && !data.Any() && !control.Any() {
		return
	}
	ns.node.log.Error("a namespace lacks records since damage was repaired: members give back what they hold, and what this node alone has written is lost",
		logNamespace(ns), slog.Int64("records", data.Records), slog.Int("named", len(data.Keys)), slog.Int("set_aside", data.SetAside),
		slog.Int("kept", data.Kept), slog.Int64("control", control.Records), slog.Bool("older", older))
}
