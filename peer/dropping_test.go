package peer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
)

// A scan is paused, as an export is whose reader has stopped: its namespace is
// dropped and joined again, and others are made, joined and dropped meanwhile.
// Then the scan ends with ErrClosed.
func TestPausedScanHoldsNothingUp(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		put(t, sb, "a", "1")
		put(t, sb, "b", "1")
		other, err := na.CreateNamespace(t.Context(), "other", peer.Policy{})
		must(t, err)
		toOther, toNotes := invite(t, other, peer.InviteOptions{}), invite(t, sa, peer.InviteOptions{})
		meanwhile := func() error {
			ctx := t.Context()
			if err := nb.ForceDrop(ctx, "notes"); err != nil {
				return err
			}
			if _, err := nb.CreateNamespace(ctx, "notes", peer.Policy{}); err != nil {
				return err
			}
			if _, err := nb.Join(ctx, toOther); err != nil {
				return err
			}
			if err := errors.Join(nb.ForceDrop(ctx, "notes"), nb.ForceDrop(ctx, "other")); err != nil {
				return err
			}
			again, err := nb.Join(ctx, toNotes)
			if err != nil {
				return err
			}
			if _, err := again.Put(ctx, []byte("c"), nil); err != nil {
				return err
			}
			if records := again.Info().Records; records != 1 {
				return fmt.Errorf("the namespace joined again holds %d records, want 1", records)
			}
			return nil
		}
		done := make(chan error, 1)
		seen := 0
		for _, err = range sb.Scan(t.Context(), nil) {
			if seen++; seen > 1 {
				break
			}
			go func() { done <- meanwhile() }()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(5 * time.Minute):
				t.Error("a drop, a creation or a join waits for a paused scan")
			}
		}
		if !errors.Is(err, peer.ErrClosed) {
			t.Errorf("a scan over which its namespace was dropped ends with %v, want ErrClosed", err)
		}
	})
}
