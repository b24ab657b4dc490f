package memdb

import (
	"bytes"
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// summary is what SaveSummary was given last. It is never changed.
type summary struct {
	seq   uint64
	bytes []byte
}

func (n *namespace) SaveSummary(ctx context.Context, seq uint64, b []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := dbadapter.CheckSummary(b); err != nil {
		return err
	}
	s := &summary{seq, bytes.Clone(b)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return n.errClosed("save a summary")
	}
	if seq > n.data.seq {
		return fmt.Errorf("save a summary up to change %d: the last change is %d", seq, n.data.seq)
	}
	n.data.summary = s
	n.data.trim(n.store.options.LogLimit)
	return nil
}

func (n *namespace) Summary(ctx context.Context) (uint64, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	n.mu.Lock()
	s, closed := n.data.summary, n.closed.Load()
	n.mu.Unlock()
	switch {
	case closed:
		return 0, nil, n.errClosed("read the summary")
	case s == nil:
		return 0, nil, fmt.Errorf("read the summary: %w", dbadapter.ErrNotFound)
	}
	return s.seq, bytes.Clone(s.bytes), nil
}
