// Package keyhash is the arithmetic of the ground floor. It has the prime field that
// pairs live in, and the keyed hash that makes numbers from bytes. It speaks of bytes
// and numbers only; dbadapter and iblt/rateless give them their types.
//
// Everything that places or checks an item is keyed with a namespace's secret. Without
// the secret, a peer can neither aim two keys at one cell nor make two contents agree.
// The hash is HighwayHash (Alakuijala, Cox, Wassenberg 2016), a keyed pseudo-random
// function. It is not collision resistant against an attacker that holds the key, which
// is why signatures hash with SHA-512.
package keyhash

// KeySize is the length of a Key in bytes.
const KeySize = 32

// Key keys the hash.
type Key [KeySize]byte
