package placement

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/internal/roster"
)

// Rules and layouts travel in the deterministic encoding of CBOR (RFC 8949, section 4.2),
// so that each has one form; docs/protocol describes both.
var encoding, decoding = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxArrayElements: MaxHosts, MaxMapPairs: 16, MaxNestedLevels: 4,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return enc, dec
}()

// storedRule and storedPrefixes are a rule without and with a table of prefixes. storedLocated
// is one with a locator; its table may be empty. storedWriter is one of the kind Writer.
type storedRule struct {
	_        struct{} `cbor:",toarray"`
	Kind     Kind
	Shards   int
	Replicas int
}

type storedPrefixes struct {
	_        struct{} `cbor:",toarray"`
	Kind     Kind
	Shards   int
	Replicas int
	Prefixes []storedPrefix // ascending
}

type storedLocated struct {
	_        struct{} `cbor:",toarray"`
	Kind     Kind
	Shards   int
	Replicas int
	Prefixes []storedPrefix
	Locator  bool // true
}

type storedWriter struct {
	_        struct{} `cbor:",toarray"`
	Kind     Kind
	Shards   int
	Replicas int
	Prefixes []storedPrefix // none
	Locator  bool
	Inline   int
}

type storedPrefix struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Shard  Shard
}

// Value is the rule as the founding statement of a namespace carries it. ErrRule: it is
// not valid, or its table is too long.
func (r *Rule) Value() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	table := []storedPrefix{}
	for _, p := range r.Prefixes {
		table = append(table, storedPrefix{Prefix: p.Prefix, Shard: p.Shard})
	}
	slices.SortFunc(table, func(a, b storedPrefix) int { return bytes.Compare(a.Prefix, b.Prefix) })
	var whole any
	switch {
	case r.Kind == Writer:
		whole = storedWriter{Kind: r.Kind, Shards: r.Shards, Replicas: r.Replicas, Prefixes: table, Locator: r.Locator, Inline: r.Inline}
	case r.Locator:
		whole = storedLocated{Kind: r.Kind, Shards: r.Shards, Replicas: r.Replicas, Prefixes: table, Locator: true}
	case r.Kind == Prefix:
		whole = storedPrefixes{Kind: r.Kind, Shards: r.Shards, Replicas: r.Replicas, Prefixes: table}
	default:
		whole = storedRule{Kind: r.Kind, Shards: r.Shards, Replicas: r.Replicas}
	}
	value, err := encoding.Marshal(whole)
	if err == nil && len(value) > roster.MaxPlacement {
		err = fmt.Errorf("%w: the table of prefixes makes it %d bytes: at most %d", ErrRule, len(value), roster.MaxPlacement)
	}
	return value, err
}

// ParseRule reads a rule. There is one form of each: other bytes are ErrRule.
func ParseRule(value []byte) (*Rule, error) {
	var s storedWriter
	var err error
	switch {
	case len(value) > 0 && value[0] == 0x83: // an array of three
		var short storedRule
		err = decoding.Unmarshal(value, &short)
		s.Kind, s.Shards, s.Replicas = short.Kind, short.Shards, short.Replicas
	case len(value) > 0 && value[0] == 0x84: // of four
		var short storedPrefixes
		err = decoding.Unmarshal(value, &short)
		s.Kind, s.Shards, s.Replicas, s.Prefixes = short.Kind, short.Shards, short.Replicas, short.Prefixes
	case len(value) > 0 && value[0] == 0x85: // of five
		var short storedLocated
		err = decoding.Unmarshal(value, &short)
		s.Kind, s.Shards, s.Replicas, s.Prefixes, s.Locator = short.Kind, short.Shards, short.Replicas, short.Prefixes, short.Locator
	default:
		err = decoding.Unmarshal(value, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrRule, err)
	}
	r := &Rule{Kind: s.Kind, Shards: s.Shards, Replicas: s.Replicas, Locator: s.Locator, Inline: s.Inline}
	for _, p := range s.Prefixes {
		r.Prefixes = append(r.Prefixes, PrefixShard{p.Prefix, p.Shard})
	}
	again, err := r.Value()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, value) {
		return nil, fmt.Errorf("%w: it has another form than that of its content", ErrRule)
	}
	return r, nil
}
