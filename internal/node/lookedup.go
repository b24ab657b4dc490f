package node

import (
	"fmt"

	"github.com/syncd-io/syncd/internal/route"
)

// LookedUp is what a look-up has found of a key.
type LookedUp struct {
	route.Found
	// Here: this node is a host, and its own answer was enough, or is among what was found.
	Here bool
}

// doubt notes why it is not sure.
func (f *LookedUp) doubt(why string) { f.Sure, f.Doubt = false, why }

// Unsure is ErrUnsure with what the look-up says of why.
func (f *LookedUp) Unsure() error {
	if f.Doubt == "" {
		return ErrUnsure
	}
	return fmt.Errorf("%w: %s", ErrUnsure, f.Doubt)
}
