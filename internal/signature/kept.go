package signature

import "github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/cache"

// mostKept keys are kept as verification needs them, 1.5 KiB each: those that were used last.
const mostKept = 512

// keys verifies by keys that it keeps. A node verifies one signature after the other by the
// keys of few members. To make a key ready is a fifth of that work.
var keys = cache.NewVerifier(cache.NewLRUCache(mostKept))
