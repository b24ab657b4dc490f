package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Each long scan ticks at least every tickEvery records, and ends with the
// error of a tick, or of the context.
func TestScansTickAndEnd(t *testing.T) {
	const records = 3*tickEvery + 10
	s := newSide(t)
	s.fill("k", records)
	all := func(ctx context.Context, tick func() error) error {
		snap, err := s.live.Snapshot(ctx, s.ns, tick)
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		for _, err := range snap.All() {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		scan  func(context.Context, func() error) error
		times int // the records are read
	}{
		"Load": {func(ctx context.Context, tick func() error) error {
			snap, err := s.ns.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			return New(s.keys).Load(ctx, snap, tick)
		}, 2},
		"Grow": {func(ctx context.Context, tick func() error) error {
			l := New(s.keys)
			l.ranges.Add(1, dbadapter.Sum{Records: 1 << 18}) // as if there were many
			_, _, l.undo.seq = s.live.State()
			_, err := l.Grow(ctx, s.ns, tick)
			return err
		}, 1},
		"Snapshot.All": {all, 1},
		"Snapshot.Cells": {func(ctx context.Context, tick func() error) error {
			snap, err := s.live.Snapshot(ctx, s.ns, tick)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			_, err = snap.Cells(s.live.Cells(), s.live.Cells()+1)
			return err
		}, 1},
		"Live.Prefix": {func(ctx context.Context, tick func() error) error {
			p, err := s.live.Prefix(ctx, s.ns, []byte("k"), wire.Span{}, tick, nil)
			if err == nil {
				p.Close()
			}
			return err
		}, 2},
		"Prefix.Cells": {func(ctx context.Context, tick func() error) error {
			opened, cancel := context.WithCancel(context.Background())
			defer cancel()
			ready := false
			p, err := s.live.Prefix(opened, s.ns, []byte("k"), wire.Span{}, func() error {
				if !ready {
					return nil
				}
				return tick()
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			ready = true
			if ctx.Err() != nil {
				cancel()
			}
			_, err = p.Cells(1<<14, 1<<14+1)
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ticks := 0
			count := func() error { ticks++; return nil }
			if err := c.scan(t.Context(), count); err != nil || ticks < c.times*(records/tickEvery) {
				t.Errorf("%d ticks in %d reads of %d records (%v)", ticks, c.times, records, err)
			}
			stop, ticks := errors.New("stop"), 0
			err := c.scan(t.Context(), func() error {
				if ticks++; ticks == 2 {
					return stop
				}
				return nil
			})
			if !errors.Is(err, stop) || ticks != 2 {
				t.Errorf("after an error of the second tick: %v, %d ticks", err, ticks)
			}
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.scan(cancelled, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
	if marks := len(s.live.undo.marks); marks != 0 {
		t.Errorf("%d marks are left", marks)
	}
}
