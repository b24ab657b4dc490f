package gc

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
)

// Greeting is what a sync greets with, and what it may conclude at its end.
type Greeting struct {
	List       [16]byte
	Tau, Floor dbadapter.Timestamp
	// Basis is that of the watermark when Tau was read.
	Basis watermark.Basis
}

// Greet reads what this node says with the snapshot that is taken next. lists is the
// digest of what the two sides must agree on, the list of members among it.
func (g *Collector) Greet(ctx context.Context, lists func() [16]byte) (s Greeting, err error) {
	g.View(func(w *watermark.Watermark) { s.Basis = w.Basis() })
	if s.Tau, err = g.Tau(ctx); err != nil {
		return s, err
	}
	defer g.c.Group.Hold().Release()
	g.View(func(w *watermark.Watermark) {
		s.List, s.Floor = lists(), w.Greeted()
		if !w.Still(s.Basis) {
			s.Tau = 0 // a reading from before a restamp, or a change of the list, says nothing under the list of now
		}
	})
	return s, nil
}

// Ended notes that a sync with a member has ended well, and reports whether the members wait for
// this node. It is ErrAnew if what the sync began with says nothing any more.
func (g *Collector) Ended(with roster.ID, began watermark.Basis) (counts bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mark.Still(began) {
		return false, ErrAnew
	}
	if g.synced == nil {
		g.synced = map[roster.ID]time.Time{}
	}
	g.synced[with] = g.c.Now()
	return g.mark.Counts(), nil
}

// FloorVerdict is what becomes of the records that a peer has declined for its floor.
type FloorVerdict uint8

// The verdicts.
const (
	FloorIgnored  FloorVerdict = iota // they stay
	FloorUnproven                     // they stay until the members' pledges prove the floor
	FloorProven                       // they leave this node, too
)

// Synced takes what a sync has shown that began with a reading of this node's clock. declined: the
// peer has declined records for its floor. writes reports which members may write.
func (g *Collector) Synced(s *watermark.Sync, tau dbadapter.Timestamp, declined bool, writes func(roster.ID) bool) (FloorVerdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.update(func(w *watermark.Watermark) bool { return w.Synced(s, tau) }); err != nil {
		return FloorIgnored, err
	}
	switch {
	case !declined || !s.Writes && !g.mark.LeftToReaders(writes) || s.Floor == 0 || s.Floor == watermark.NoFloor:
		return FloorIgnored, nil
	case !g.mark.Proven(s.Floor, tau):
		g.mark.DeclinedFor(s.Floor, tau)
		return FloorUnproven, nil
	}
	return FloorProven, nil
}
