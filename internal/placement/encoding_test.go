package placement

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/roster"
)

// These bytes are a part of what a namespace's id is made of.
var ruleVectors = []struct {
	rule  Rule
	value string
}{
	{Rule{Kind: Hash, Shards: 32, Replicas: 2}, "8301182002"},
	{Rule{Kind: Hash, Shards: MaxShards, Replicas: 16}, "830119100010"},
	{Rule{Kind: Prefix, Shards: 4, Replicas: 3, Prefixes: []PrefixShard{{[]byte("de"), 1}, {[]byte("debian/"), 3}}}, "8402040382824264650182476465626961" + "6e2f03"},
	{Rule{Kind: Hash, Shards: 32, Replicas: 2, Locator: true}, "850118200280f5"},
	{Rule{Kind: Prefix, Shards: 4, Replicas: 3, Prefixes: []PrefixShard{{[]byte("de"), 1}}, Locator: true}, "8502040381824264" + "6501f5"},
	{Rule{Kind: Writer, Shards: 32, Replicas: 3, Locator: true, Inline: DefaultInline}, "860418200380f5190400"},
	{Rule{Kind: Writer, Shards: 4, Replicas: 3, Locator: true}, "8604040380f500"},
}

func TestRuleVectors(t *testing.T) {
	for _, v := range ruleVectors {
		value, err := v.rule.Value()
		if got := hex.EncodeToString(value); err != nil || got != v.value {
			t.Errorf("%+v: %s, %v; want %s", v.rule, got, err, v.value)
		}
		if back, err := ParseRule(value); err != nil || !reflect.DeepEqual(*back, v.rule) {
			t.Errorf("%s: %+v, %v", v.value, back, err)
		}
	}
}

// The order in which a table of prefixes is given does not matter; the order in which it
// is written does.
func TestPrefixesInOrder(t *testing.T) {
	r := ruleVectors[2].rule
	r.Prefixes = slices.Clone(r.Prefixes)
	slices.Reverse(r.Prefixes)
	value, err := r.Value()
	if err != nil || hex.EncodeToString(value) != ruleVectors[2].value {
		t.Errorf("%x, %v", value, err)
	}
	twisted, _ := encoding.Marshal([]any{Prefix, 4, 3, []storedPrefix{{Prefix: []byte("z"), Shard: 1}, {Prefix: []byte("a"), Shard: 2}}})
	if _, err := ParseRule(twisted); !errors.Is(err, ErrRule) {
		t.Errorf("prefixes that do not ascend: %v", err)
	}
}

func TestRefusedRuleBytes(t *testing.T) {
	long := Rule{Kind: Prefix, Shards: 64, Replicas: 1}
	for i := range MaxPrefixes {
		long.Prefixes = append(long.Prefixes, PrefixShard{bytes.Repeat([]byte{byte(i)}, MaxPrefix), Shard(i)})
	}
	if _, err := long.Value(); !errors.Is(err, ErrRule) {
		t.Errorf("a table of more than %d bytes: %v", roster.MaxPlacement, err)
	}
	for name, value := range map[string]string{
		"nothing": "", "no array": "01", "two": "82011820", "five": "85011820020102", "no locator": "850118200280f4", "six": "860118200280f5f5", "a locator by the writer of before": "850318200280f5", "writer without inline": "8304182002", "inline by hash": "860118200280f501", "much inline": "860418200280f51a00010001", "negative inline": "860418200280f520", "prefixes by hash": "850104038182426465" + "01f5", "null prefixes": "8501182002f6f5", "a kind of the future": "8305182002", "no kind": "8300182002",
		"one shard": "83010102", "no power of two": "83010c02", "no replicas": "8301182000", "negative": "8301182020", "a long form": "830118201802",
		"an empty table": "840118200280", "a table without prefixes": "840218200280", "bytes after it": "830118200200", "an open length": "9f01182002ff",
		"text for a prefix": "8402040181826161" + "01", "null": "f6", "nested": "8181818181818181",
	} {
		b, err := hex.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ParseRule(b); !errors.Is(err, ErrRule) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestChangedRuleBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, v := range ruleVectors {
		value, _ := hex.DecodeString(v.value)
		for range 2000 {
			changed := slices.Clone(value)
			changed[random.IntN(len(changed))] ^= byte(1 + random.IntN(255))
			checkRule(t, changed)
		}
	}
}

// checkRule wants an error, or a rule with these very bytes.
func checkRule(t *testing.T, value []byte) {
	t.Helper()
	r, err := ParseRule(value)
	if err != nil {
		if !errors.Is(err, ErrRule) {
			t.Errorf("%x: %v", value, err)
		}
		return
	}
	if again, err := r.Value(); err != nil || !bytes.Equal(again, value) {
		t.Errorf("%x became %x, %v", value, again, err)
	}
	if home := r.Home([]byte("debian"), 1<<63); int(home) >= r.Shards {
		t.Errorf("%x: shard %d", value, home)
	}
}

func FuzzParseRule(f *testing.F) {
	for _, v := range ruleVectors {
		value, _ := hex.DecodeString(v.value)
		f.Add(value)
	}
	f.Fuzz(checkRule)
}
