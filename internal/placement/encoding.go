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

// fields are those of a rule, in their order: kind, shards, replicas, prefixes, locator, inline. A rule ends with
// the last one that it needs: the kind Hash with the third, Prefix with the fourth, each with a locator with the
// fifth, and Writer with the sixth.
func (r *Rule) fields(prefixes *[]storedPrefix) []any {
	return []any{&r.Kind, &r.Shards, &r.Replicas, prefixes, &r.Locator, &r.Inline}
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
	fields := 3
	switch {
	case r.Kind == Writer:
		fields = 6
	case r.Locator:
		fields = 5
	case r.Kind == Prefix:
		fields = 4
	}
	value, err := encoding.Marshal(r.fields(&table)[:fields])
	if err == nil && len(value) > roster.MaxPlacement {
		err = fmt.Errorf("%w: the table of prefixes makes it %d bytes: at most %d", ErrRule, len(value), roster.MaxPlacement)
	}
	return value, err
}

// ParseRule reads a rule. There is one form of each: other bytes are ErrRule.
func ParseRule(value []byte) (*Rule, error) {
	var all []cbor.RawMessage
	err := decoding.Unmarshal(value, &all)
	r, table := &Rule{}, []storedPrefix{}
	for i, field := range r.fields(&table) {
		if err == nil && i < len(all) {
			err = decoding.Unmarshal(all[i], field)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrRule, err)
	}
	for _, p := range table {
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
