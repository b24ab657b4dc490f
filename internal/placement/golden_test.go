package placement

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/golden"
)

// What travels of a placement and of a layout, and which shard a key is in.
func TestGoldenLayouts(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# placements, the shards of keys, and tables; docs/protocol, \"Shards\"")
	prefixes := []PrefixShard{{[]byte("de"), 3}, {[]byte("debian/"), 7}}
	for _, r := range []Rule{
		{Kind: Hash, Shards: 32, Replicas: 2},
		{Kind: Prefix, Shards: 32, Replicas: 2, Prefixes: prefixes},
		{Kind: Hash, Shards: 32, Replicas: 2, Locator: true},
		{Kind: Prefix, Shards: 32, Replicas: 2, Prefixes: prefixes, Locator: true},
		{Kind: Writer, Shards: 32, Replicas: 2, Locator: true, Inline: DefaultInline},
	} {
		value, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "placement, %d shards, %d replicas: %x\n", r.Shards, r.Replicas, value)
	}
	r := Rule{Kind: Prefix, Shards: 32, Replicas: 2, Prefixes: prefixes}
	const hash = 0x5fffffffffffffff // its first five bits are 11
	for _, key := range []string{"debian/x", "debian/", "debian", "de", "d", ""} {
		fmt.Fprintf(&b, "shard of %q by these prefixes, where its home is %x: %d\n", key, uint64(hash), r.Home([]byte(key), hash))
	}
	hosts := hostsOf(3)
	for _, id := range slices.Sorted(slices.Values(hosts)) {
		fmt.Fprintf(&b, "host %x\n", string(id))
	}
	four := ruleOf(4, 2)
	l, err := Plan(four, hosts)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "basis %x\n", l.basis)
	fmt.Fprintf(&b, "table, 4 shards, 2 replicas: %x\n", l.Value())
	fmt.Fprintf(&b, "its hash: %x\n", sha256.Sum256(l.Value()))
	next, err := Next(four, l, 2, false, hosts[1:], ready)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "the next table, without the first host: %x\n", next.Value())
	for s := range Shard(4) {
		name := next.Row(s).Name()
		fmt.Fprintf(&b, "the name of its row of shard %d: %x\n", s, name[:])
	}
	golden.Compare(t, "testdata/layouts.txt", b.String())
}
