package placement

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Shard is the number of a shard, from 0.
type Shard uint16

// Bounds of what a namespace is cut into.
const (
	// MaxShards bounds the table of a layout, and what a node keeps of each shard.
	MaxShards = 4096
	// MaxReplicas is how many hosts a shard is to have at most.
	MaxReplicas = 16
	// MaxPrefixes bounds the table of a rule; all of it has roster.MaxPlacement bytes.
	MaxPrefixes = 64
	// MaxPrefix is the longest prefix in bytes.
	MaxPrefix = 64
	// MaxInline bounds Rule.Inline, and DefaultInline is what it is unless something else is asked for.
	MaxInline     = 64 << 10
	DefaultInline = 1 << 10
)

// Kind is how the shard of a record is found.
type Kind uint8

// The kinds of placement.
const (
	// Hash places a record by a hash of its key.
	Hash Kind = iota + 1
	// Prefix places it by a table of prefixes.
	Prefix
	// formerWriter placed it where its key was written first; see ErrWriter.
	formerWriter
	// Writer places it as Hash does, and keeps large values in shards of their writers (package bodies).
	Writer
)

var kinds = [...]string{Hash: "hash", Prefix: "prefix", formerWriter: "writer", Writer: "writer"}

// String is the kind's name in small letters.
func (k Kind) String() string {
	if k >= Hash && k <= Writer {
		return kinds[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ErrRule is returned for a rule that is not one.
var ErrRule = errors.New("no rule of placement")

// ErrWriter refuses the placement writer of before, by which earlier programs have made namespaces. It is ErrRule.
var ErrWriter = fmt.Errorf("%w: this form of the placement writer is supported no more: export the namespace with the program of before, and import it into a new one", ErrRule)

// ParseKind reads a kind's name.
func ParseKind(s string) (Kind, error) {
	for k := Writer; k >= Hash; k-- {
		if kinds[k] == s {
			return k, nil
		}
	}
	return 0, fmt.Errorf("%w: placement %q: want hash, prefix or writer", ErrRule, s)
}

// Rule says how a namespace is cut into shards. It is fixed when the namespace is made,
// whose id is made of it.
type Rule struct {
	Kind Kind
	// Shards is their number: a power of two.
	Shards int
	// Replicas is how many hosts each shard is to have, where there are so many.
	Replicas int
	// Prefixes is the table of the kind Prefix.
	Prefixes []PrefixShard
	// Locator: hosts tell all nodes which keys their shards hold, so that a key that there is
	// not takes no request. The kind Writer has one.
	Locator bool
	// Inline, of the kind Writer, is the longest value in bytes that stays in its record.
	Inline int
}

// PrefixShard is a line of the table.
type PrefixShard struct {
	Prefix []byte
	Shard  Shard
}

// Validate says what is wrong with a rule, or nil.
func (r *Rule) Validate() error {
	switch {
	case r.Kind == formerWriter:
		return ErrWriter
	case r.Kind < Hash || r.Kind > Writer:
		return fmt.Errorf("%w: its kind %d is unknown: use a newer program", ErrRule, r.Kind)
	case r.Shards < 2 || r.Shards > MaxShards || bits.OnesCount(uint(r.Shards)) != 1:
		return fmt.Errorf("%w: %d shards: want a power of two from 2 to %d", ErrRule, r.Shards, MaxShards)
	case r.Replicas < 1 || r.Replicas > MaxReplicas:
		return fmt.Errorf("%w: %d replicas: want 1 to %d", ErrRule, r.Replicas, MaxReplicas)
	case r.Kind == Prefix && len(r.Prefixes) == 0:
		return fmt.Errorf("%w: no prefixes: name at least one, or choose the placement hash", ErrRule)
	case r.Kind != Prefix && len(r.Prefixes) > 0:
		return fmt.Errorf("%w: the placement %s takes no prefixes", ErrRule, r.Kind)
	case r.Inline < 0 || r.Inline > MaxInline || r.Kind != Writer && r.Inline != 0:
		return fmt.Errorf("%w: values of %d bytes in records: want 0 to %d, by placement writer alone", ErrRule, r.Inline, MaxInline)
	case r.Kind == Writer && !r.Locator:
		return fmt.Errorf("%w: the placement writer has a locator", ErrRule)
	case len(r.Prefixes) > MaxPrefixes:
		return fmt.Errorf("%w: %d prefixes: at most %d", ErrRule, len(r.Prefixes), MaxPrefixes)
	}
	for i, p := range r.Prefixes {
		switch {
		case len(p.Prefix) == 0 || len(p.Prefix) > MaxPrefix:
			return fmt.Errorf("%w: a prefix of %d bytes: want 1 to %d", ErrRule, len(p.Prefix), MaxPrefix)
		case int(p.Shard) >= r.Shards:
			return fmt.Errorf("%w: prefix %q goes to shard %d: the last one is %d", ErrRule, p.Prefix, p.Shard, r.Shards-1)
		case slices.ContainsFunc(r.Prefixes[:i], func(o PrefixShard) bool { return bytes.Equal(o.Prefix, p.Prefix) }):
			return fmt.Errorf("%w: prefix %q is in the table twice", ErrRule, p.Prefix)
		}
	}
	return nil
}

// Home is the shard of a key whose keyed hash is given.
func (r *Rule) Home(key []byte, hash uint64) Shard {
	home, longest := Shard(hash>>(64-bits.TrailingZeros(uint(r.Shards)))), 0
	for _, p := range r.Prefixes {
		if len(p.Prefix) > longest && bytes.HasPrefix(key, p.Prefix) {
			home, longest = p.Shard, len(p.Prefix)
		}
	}
	return home
}
