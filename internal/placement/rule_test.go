package placement

import (
	"errors"
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	r := Rule{Kind: Prefix, Shards: 4, Replicas: 1, Prefixes: []PrefixShard{{[]byte("de"), 1}, {[]byte("debian/"), 3}, {[]byte("z"), 0}}}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	const second = 0x4000000000000000 // the first hash of shard 1
	for _, c := range []struct {
		key  string
		hash uint64
		want Shard
	}{
		{"debian/x", 0, 3}, {"debian", 0, 1}, {"d", 0, 0}, {"d", second - 1, 0}, {"d", second, 1}, {"d", 1<<64 - 1, 3}, {"zz", 1<<64 - 1, 0},
	} {
		if got := r.Home([]byte(c.key), c.hash); got != c.want {
			t.Errorf("%q with hash %#x: shard %d, want %d", c.key, c.hash, got, c.want)
		}
	}
}

func TestRefusedRules(t *testing.T) {
	long := make([]byte, MaxPrefix+1)
	for name, r := range map[string]Rule{
		"no kind":          {Shards: 2, Replicas: 1},
		"unknown kind":     {Kind: 5, Shards: 2, Replicas: 1},
		"one shard":        {Kind: Hash, Shards: 1, Replicas: 1},
		"no power":         {Kind: Hash, Shards: 12, Replicas: 1},
		"too many":         {Kind: Hash, Shards: 2 * MaxShards, Replicas: 1},
		"negative":         {Kind: Hash, Shards: -2, Replicas: 1},
		"no replica":       {Kind: Hash, Shards: 2},
		"many replicas":    {Kind: Hash, Shards: 2, Replicas: MaxReplicas + 1},
		"no table":         {Kind: Prefix, Shards: 2, Replicas: 1},
		"table of another": {Kind: Hash, Shards: 2, Replicas: 1, Prefixes: []PrefixShard{{[]byte("a"), 0}}},
		"no locator":       {Kind: Writer, Shards: 2, Replicas: 1},
		"prefix by writer": {Kind: Writer, Shards: 2, Replicas: 1, Locator: true, Prefixes: []PrefixShard{{[]byte("a"), 0}}},
		"inline by hash":   {Kind: Hash, Shards: 2, Replicas: 1, Inline: 1},
		"negative inline":  {Kind: Writer, Shards: 2, Replicas: 1, Locator: true, Inline: -1},
		"large inline":     {Kind: Writer, Shards: 2, Replicas: 1, Locator: true, Inline: MaxInline + 1},
		"empty prefix":     {Kind: Prefix, Shards: 2, Replicas: 1, Prefixes: []PrefixShard{{nil, 0}}},
		"long prefix":      {Kind: Prefix, Shards: 2, Replicas: 1, Prefixes: []PrefixShard{{long, 0}}},
		"no such shard":    {Kind: Prefix, Shards: 2, Replicas: 1, Prefixes: []PrefixShard{{[]byte("a"), 2}}},
		"twice":            {Kind: Prefix, Shards: 2, Replicas: 1, Prefixes: []PrefixShard{{[]byte("a"), 1}, {[]byte("a"), 0}}},
	} {
		if err := r.Validate(); !errors.Is(err, ErrRule) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range []Kind{Hash, Prefix, Writer} {
		if got, err := ParseKind(k.String()); got != k || err != nil {
			t.Errorf("%s: %v %v", k, got, err)
		}
	}
	if _, err := ParseKind("ring"); !errors.Is(err, ErrRule) {
		t.Errorf("ring: %v", err)
	}
	// The kind writer of before is refused with what to do, by its number.
	_, err := ParseRule([]byte{0x83, 3, 0x18, 32, 2})
	if !errors.Is(err, ErrRule) || !errors.Is(err, ErrWriter) || !strings.Contains(err.Error(), "export the namespace with the program of before, and import") {
		t.Errorf("writer: %v", err)
	}
}
