package signature

import (
	"sync"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// mostExpanded keys are kept expanded: 1.5 KiB each.
const mostExpanded = 512

// expanded has keys taken apart, and multiples of them. A node verifies one signature after the
// other by the keys of few members, and the key's part is a fifth of it.
type expanded struct {
	mu sync.RWMutex
	of map[[ed25519.PublicKeySize]byte]*ed25519.ExpandedPublicKey
}

var keys expanded

// get is a key taken apart; nil: it is no point. Where there is no room all are forgotten: members are
// fewer, and what is no member's comes once.
func (e *expanded) get(key []byte) *ed25519.ExpandedPublicKey {
	k := [ed25519.PublicKeySize]byte(key)
	e.mu.RLock()
	known := e.of[k]
	e.mu.RUnlock()
	if known != nil {
		return known
	}
	made, err := ed25519.NewExpandedPublicKey(k[:])
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil || len(e.of) >= mostExpanded {
		e.of = map[[ed25519.PublicKeySize]byte]*ed25519.ExpandedPublicKey{}
	}
	e.of[k] = made
	return made
}
