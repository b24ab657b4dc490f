package machine

import (
	"context"
	"time"
)

// Sleep waits, or returns the cause of a context that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wake gives a token to what waits for one. It does not wait: c holds one token.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has not looked since
	}
}
