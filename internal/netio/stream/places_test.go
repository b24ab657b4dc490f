package stream

import (
	"context"
	"errors"
	"testing"
)

// A sync waits for a place with its peer, and not for those with others.
func TestPlacesWithAPeer(t *testing.T) {
	p := NewPlaces(3, 1)
	release, err := p.Take(t.Context(), "a")
	must(t, err)
	if other, err := p.Take(t.Context(), "b"); err != nil {
		t.Error(err)
	} else {
		other()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Take(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second place with one peer: %v", err)
	}
	release()
	if again, err := p.Take(t.Context(), "a"); err != nil {
		t.Error(err)
	} else {
		again()
	}
	if len(p.peers) != 0 {
		t.Errorf("%d peers are remembered", len(p.peers))
	}
}
