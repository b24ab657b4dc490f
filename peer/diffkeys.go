package peer

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// DiffOptions narrow what DiffKeys lists.
type DiffOptions struct {
	// Prefix narrows it to the keys that begin with it.
	Prefix []byte
	// Limit is how many keys are listed at most; 0 means all. Report.MoreKeys says
	// that it kept some out.
	Limit int
	// Progress is as in SyncOptions.
	Progress func(reconcile.Report)
}

// keysAhead is how many keys wait for the caller of DiffKeys: a thousandth of a second of
// listing.
const keysAhead = 64

// workingPause is between two looks at whether the peer is to learn that this node has
// not gone. It matters while the caller of DiffKeys takes its time.
const workingPause = time.Second

// DiffKeys lists the keys that differ between this node and a peer, in no order, and changes nothing on either
// side. It calls each with one after the other, as they are found. A call may take up to some minutes; its
// error ends the listing, and is returned. The versions of the peer's are its own word. The report is
// meaningful even with an error.
//
// By placement writer a large value that only one side has is listed under its key.
//
// Memory is that of one part of the sync, however much differs.
func (ns *Namespace) DiffKeys(ctx context.Context, id ID, o DiffOptions, each func(reconcile.KeyDifference) error) (reconcile.Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := make(chan reconcile.KeyDifference, keysAhead)
	list := &syncing.KeyList{Limit: o.Limit, Each: func(d reconcile.KeyDifference, tick func() error) error {
		of, users := ns.core.UsersKey(d.Key)
		if !users {
			return nil
		}
		d.Key = of
		pause := time.NewTimer(workingPause)
		defer pause.Stop()
		for {
			select {
			case keys <- d:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-pause.C:
				if err := tick(); err != nil {
					return err
				}
				pause.Reset(workingPause)
			}
		}
	}}
	var report reconcile.Report
	var err error
	go func() {
		defer close(keys)
		report, err = ns.Sync(ctx, id, SyncOptions{Prefix: o.Prefix, DryRun: true, Progress: o.Progress, keys: list})
	}()
	var failed error
	for d := range keys {
		if failed == nil {
			if failed = each(d); failed != nil {
				cancel(failed)
			}
		}
	}
	if failed != nil {
		return report, failed
	}
	return report, err
}
