package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// Summaries says when a part's live sketch is kept in its store as a summary. The
// next start then reads the changes since, and not all records. A zero field takes
// its default. A start by a scan takes some 3 µs a record. One by a replay takes
// some 2 µs a change, and 10 ms for the summary. A summary takes up to 2.2 MiB on
// the disk.
type Summaries struct {
	// Least is from how many records on a summary is kept. Default 2^14: fewer are
	// scanned in some 50 ms. Less than 0: from none on.
	Least int
	// Every is after how many changes it is kept anew. Default 2^17: 17 bytes of
	// summary are written for each change, beside its 80 in the log.
	Every int
	// Idle is after how many changes it is kept anew once no more come. Default 2^12.
	Idle int
	// Rest is for how long no change must have come. Default 10 s. A summary that
	// could not be kept is tried again after six times as long.
	Rest time.Duration
}

func (s Summaries) withDefaults() Summaries {
	for _, f := range []struct {
		field *int
		value int
	}{{&s.Least, 1 << 14}, {&s.Every, 1 << 17}, {&s.Idle, 1 << 12}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if s.Rest == 0 {
		s.Rest = 10 * time.Second
	}
	return s
}

// Loading says how a live sketch was brought up to date.
type Loading struct {
	// Control: it is that of the control namespace.
	Control bool
	// Records is how many it has, and Replayed how many changes were replayed.
	Records, Replayed uint64
	// Scanned says why all records were scanned; nil if they were not.
	// dbadapter.ErrNotFound: no summary was kept.
	Scanned error
}

// keptSummary is what a part knows of its summary.
type keptSummary struct {
	mu sync.Mutex // guards what follows, and is held while a summary is saved
	// seq is that of the last change in the summary.
	seq uint64
	// seen is the last change that a look has found, and since when.
	seen  uint64
	since time.Duration
	// not before this time is a failed save tried again.
	again time.Duration
	// noted is what the summary says of the records that wait to be collected. If
	// unchanged is set, nothing was written between the summary and the opening.
	noted     watermark.Note
	unchanged bool
	// drifted is how much drift of the live sketch had been put right before the
	// summary was made. What a sync or an audit has found since, the summary may
	// have.
	drifted uint64
}

// load brings the live sketch up to date.
func (p *Part) load(ctx context.Context) error {
	how := Loading{Control: p.isControl()}
	how.Replayed, how.Scanned = p.restore(ctx)
	if how.Scanned != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.scan(ctx); err != nil {
			return err
		}
	}
	if _, how.Records, _ = p.Live.State(); p.ns.node.Loaded != nil {
		p.ns.node.Loaded(p.ns.name, how)
	}
	return nil
}

// restore takes up the summary and replays the changes since. What does not fit is
// an error, and no guess: the caller scans.
func (p *Part) restore(ctx context.Context) (replayed uint64, err error) {
	seq, summary, err := p.Store.Summary(ctx)
	if err != nil {
		return 0, err
	}
	summary, noted, err := watermark.CutNote(summary)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", replica.ErrSummary, err)
	}
	if err := p.Live.Restore(seq, summary, p.Store.Changes(ctx, seq)); err != nil {
		return 0, err
	}
	_, _, now := p.Live.State()
	snap, err := p.Store.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	if last := snap.Seq(); last != now {
		return 0, fmt.Errorf("%w: the last change is %d, and the log ends with %d", dbadapter.ErrCorrupt, last, now)
	}
	p.kept.seq, p.kept.noted, p.kept.unchanged = seq, noted, now == seq
	return now - seq, nil
}

func (p *Part) scan(ctx context.Context) error {
	snap, err := p.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return p.Live.Load(ctx, snap, nil)
}

// due reports whether the summary is to be kept anew, with a note of what waits. closing:
// no change will come.
func (p *Part) due(now time.Duration, closing bool, noted *watermark.Note) bool {
	s, k := p.ns.node.Summaries, &p.kept
	_, records, seq := p.Live.State()
	if seq != k.seen {
		k.seen, k.since = seq, now
	}
	behind, drifted := seq-k.seq, p.Live.Drifted() != k.drifted
	switch {
	case behind == 0 && !drifted && (!closing || *noted == k.noted) || records < uint64(max(s.Least, 0)) && (!drifted || k.seq == 0):
		return false
	case closing:
		return true
	case now < k.again:
		return false
	case drifted:
		return true
	}
	return behind >= uint64(s.Every) || behind >= uint64(s.Idle) && now-k.since >= s.Rest
}

// keep keeps the summary if that is due.
func (p *Part) keep(ctx context.Context, now time.Duration, closing bool) error {
	k := &p.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	var noted watermark.Note
	if closing { // what a commit adds to what waits it adds after the commit
		noted = p.note()
	}
	if !p.due(now, closing, &noted) {
		return nil
	}
	drifted := p.Live.Drifted() // before: what is put right beside this is kept the next time
	seq, summary := p.Live.Summary()
	if err := p.Store.SaveSummary(ctx, seq, noted.Append(summary)); err != nil {
		k.again = now + 6*p.ns.node.Summaries.Rest
		return fmt.Errorf("keep a summary for the next start: %w", err)
	}
	k.seq, k.again, k.drifted, k.noted = seq, 0, drifted, noted
	return nil
}

// note is what is known to wait to be collected, once nothing writes to the part any more.
func (p *Part) note() (n watermark.Note) {
	if p.isControl() {
		return n
	}
	return p.set.gc.Waiting().Note(p.ns.Members().Digest())
}

// recall takes up what an orderly close has noted, if it is still so.
func (set *Set) recall() {
	k := &set.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unchanged {
		set.gc.Waiting().Recall(k.noted, set.ns.Members().Digest())
	}
}

// KeepSummaries keeps the summaries that are due, of all namespaces. A driver calls
// it every second or so; now is its time since a fixed moment, which setting a clock
// does not move.
func (n *Node) KeepSummaries(ctx context.Context, now time.Duration) error {
	var failed error
	for _, ns := range n.namespaces() {
		failed = errors.Join(failed, ns.keepSummaries(ctx, now, false))
	}
	return failed
}

// Rest prepares a namespace that is about to be closed in order for its next
// opening. The opening then replays nothing, and goes on with the clock where it
// was.
func (ns *Namespace) Rest(ctx context.Context) error {
	failed := ns.keepSummaries(ctx, 0, true)
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.gc.LowerCeiling(ctx))
	}
	return failed
}

func (ns *Namespace) keepSummaries(ctx context.Context, now time.Duration, closing bool) error {
	var failed error
	for _, p := range ns.parts() {
		if err := p.keep(ctx, now, closing); err != nil && !errors.Is(err, dbadapter.ErrClosed) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", ns.Members().Name(), err))
		}
	}
	return failed
}
