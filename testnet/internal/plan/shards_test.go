package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// cut has what a namespace takes that is cut into shards, in canonical form.
const cut = `name cut
nodes 3
seed 1
skew 1m
shards 8 replicas 2 placement hash
push

at 1s put 2 key7 100B
at 1s put 2 key7 100B ack 2
at 2s put 2 key7 "two words ack 2" ack quorum
at 2s put 2 key7 "ack 2"
at 3s del 1 key7 ack all
at 4s get 0 key7
at 4s get 0 key7 read one expect nowhere
at 4s get 0 key7 read all
at 4s get 2 key7 read one atleast
at 4s putif 2 key7 100B ack one
at 4s expiring 2 key7 100B for 30s ack one
at 4s dated 2 key7 100B
at 4s batch 2 key7 2 100B ack all
at 4s import 2 k 8 100B ack 2
at 4s scan 1
at 4s role 0>1 admin
at 5s random writes=20 gets=10 faults=2 profile=shards for 1m

settle 5m
expect converged
`

func TestParseShards(t *testing.T) {
	p, err := Parse(cut)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != cut {
		t.Errorf("printed as\n%s", got)
	}
	if p.Shards != 8 || p.Replicas != 2 {
		t.Errorf("%d shards, %d replicas", p.Shards, p.Replicas)
	}
	for i, want := range []string{"", "2", "quorum", "", "all", "", "", "", "", "one", "one", "", "all", "2"} {
		if got := p.Events[i].Ack; got != want {
			t.Errorf("event %d: ack %q, want %q", i, got, want)
		}
	}
	if got := []string{p.Events[6].Read, p.Events[7].Read, p.Events[8].Read}; !slices.Equal(got, []string{One, All, One}) || !p.Events[8].AtLeast {
		t.Errorf("read at %q", got)
	}
	if got := []Finding{p.Events[5].Finding, p.Events[6].Finding}; got[0] != "" || got[1] != "nowhere" {
		t.Errorf("findings %q", got)
	}
	if v := p.Events[2].Value; v != "two words ack 2" {
		t.Errorf("value %q", v)
	}
	gets := 0
	for _, e := range p.Expand().Events[16:] {
		if e.Verb == Get || e.Verb == Scan {
			gets++
		}
	}
	if gets != 10 {
		t.Errorf("%d reads drawn, not 10", gets)
	}
}

// The parser takes the word locator at the end of a line of placement hash or prefix.
func TestParseLocator(t *testing.T) {
	for _, line := range []string{"placement hash locator", "placement prefix k1=3 locator"} {
		text := strings.Replace(cut, "placement hash", line, 1)
		text = strings.Replace(text, "at 5s", "at 4s hide 1 key7\nat 4s invent 1 key8\nat 4s new 1\nat 5s", 1)
		p, err := Parse(text)
		if err != nil || !p.Rule().Locator || p.String() != text {
			t.Errorf("%s: %v, printed as\n%s", line, err, p.String())
		}
	}
}

// A table of prefixes stands behind the placement.
func TestParsePrefixes(t *testing.T) {
	const table = "shards 8 replicas 2 placement prefix k1=3 k2=0"
	text := strings.Replace(cut, "shards 8 replicas 2 placement hash", table, 1)
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	rule := p.Rule()
	if got := p.String(); got != text || rule.Kind != placement.Prefix || rule.Home([]byte("k15"), 0) != 3 || rule.Home([]byte("k2"), 0) != 0 {
		t.Errorf("%+v, printed as\n%s", rule, got)
	}
}

// Behind the placement writer stands up to what size values are in their records.
func TestParseWriter(t *testing.T) {
	for _, line := range []string{"placement writer 0B", "placement writer 100B locator"} {
		text := strings.Replace(cut, "placement hash", line, 1)
		text = strings.Replace(text, "at 5s", "at 4s reindex 1\nat 5s", 1)
		p, err := Parse(text)
		if err != nil || p.Rule().Kind != placement.Writer || p.String() != text {
			t.Errorf("%s: %v, printed as\n%s", line, err, p.String())
		}
	}
}

func TestParseShardsErrors(t *testing.T) {
	const setting = "shards 8 replicas 2 placement hash\n"
	for _, c := range []struct{ text, want string }{
		{"shards 8", `"8": want the numbers and the rule, as in shards 8 replicas 2 placement hash`},
		{"shards 8 replicas 2 placement sorted", `placement "sorted": want hash, prefix or writer`},
		{"shards 8 replicas 2 placement writer", "want the numbers and the rule"},
		{"shards 8 replicas 2 placement writer much", `size "much"`},
		{"shards 8 replicas 2 placement writer 1MiB", "want 0 to 65536"},
		{setting + "at 1s reindex 0", "reindex: only by placement writer"},
		{setting + "at 1s lie 1", "lie: a namespace that is cut into shards takes"},
		{"shards 7 replicas 2 placement hash", "want a power of two"},
		{"shards 128 replicas 2 placement hash", `shards "128": want a number from 2 to 64`},
		{"shards 8 replicas 0 placement hash", `replicas "0"`},
		{"shards 8 replicas 2 placement hash k1=3", "want the numbers and the rule"},
		{"shards 8 replicas 2 placement prefix", "want at least one prefix"},
		{"shards 8 replicas 2 placement prefix k1", `"k1": want a prefix and its shard`},
		{"shards 8 replicas 2 placement prefix k1=8", "the last one is 7"},
		{"shards 8 replicas 2 placement prefix k1=1 k1=2", "is in the table twice"},
		{setting + "at 1s touch 0 k", "touch: a namespace that is cut into shards takes put, putif, del"},
		{setting + "at 1s get 0 k read most", `unknown level "most"; the levels are one, quorum, all`},
		{setting + "at 1s del 0 k atleast", `"atleast" is too much`},
		{"at 1s putif 0 k 1B", "ack and read are for a namespace"},
		{"at 1s dated 0 k 1B ack one", "ack and read are for a namespace"},
		{setting + "at 1s random asks=1 for 5s", "takes no drawn asks"},
		{"at 1s get 0 k", "ack and read are for a namespace that is cut into shards"},
		{setting + "at 1s get 0 k expect gone", `unknown finding "gone"; the findings are record, nothing, nowhere, short, lost`},
		{setting + "at 1s del 0 k expect nothing", `"expect nothing" is too much`},
		{setting + "at 1s hide 0 k", "hide: only with a locator"},
		{"at 1s invent 0 k", "invent: only with a locator"},
		{"at 1s put 0 k 1B ack 2", "ack and read are for a namespace"},
		{"at 1s random gets=1 for 5s", "ack and read are for a namespace"},
		{setting + "at 1s put 0 k 1B ack none", `ack "none": want a number`},
		{"at 1s healall\n" + setting, `"shards" stands below an event`},
	} {
		if _, err := Parse(c.text); !errors.Is(err, ErrText) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\n\twant %s", c.text, err, c.want)
		}
	}
}

// The profile shards has what can go wrong with shards: members that go and come, beside
// crashes, copies and partitions.
func TestGenerateShards(t *testing.T) {
	seen := map[Verb]bool{}
	acks, reads := map[string]bool{}, map[string]bool{}
	voided := false // an admin is removed while it is apart
	for seed := range uint64(60) {
		p := Generate(seed, Shards, 0)
		if p.Shards < 2 || p.Replicas < 1 || p.Replicas > p.Nodes {
			t.Errorf("seed %d: %d shards, %d replicas of %d nodes", seed, p.Shards, p.Replicas, p.Nodes)
		}
		for _, e := range p.Events {
			seen[e.Verb], acks[e.Ack], reads[e.Read] = true, true, true
			voided = voided || e.Verb == Remove && slices.ContainsFunc(p.Events, func(by Event) bool {
				return slices.Contains(changes, by.Verb) && by.Node == e.Peer && by.Peer != e.Peer
			})
			if e.Verb == Remove && e.Peer == 0 || e.At > time.Hour {
				t.Errorf("seed %d: %s", seed, &e)
			}
		}
	}
	for _, v := range []Verb{Put, PutIf, Del, Expiring, Dated, Batch, Import, Get, Scan, Join, Remove, Lapse, SetRole, Crash, CrashAt, Restore, RestoreBackup, Partition, Freeze, Cut, Loss} {
		if !seen[v] {
			t.Errorf("the profile never has %s", v)
		}
	}
	for _, level := range []string{"", One, All, "2"} {
		if !acks[level] || !reads[level] && level != "2" {
			t.Errorf("it never writes or reads at level %q", level)
		}
	}
	if !voided {
		t.Error("no admin is removed that changes members")
	}
}

// The profile writer has values in their records and bodies, and in half of its plans bodies are old enough to be
// collected while the nodes are at work.
func TestGenerateWriter(t *testing.T) {
	rests, reindexed, bodies, inline := 0, 0, 0, 0
	const plans = 60
	for seed := range uint64(plans) {
		p := Generate(seed, Writer, 0)
		if err := p.Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		last := time.Duration(0)
		for _, e := range p.Events {
			if e.At-last > 40*time.Minute && last > 0 {
				rests++
			}
			last = e.At
			switch {
			case e.Verb == Reindex:
				reindexed++
			case e.Size > p.Inline:
				bodies++
			case e.Size > 0:
				inline++
			}
		}
	}
	if rests < plans/3 || reindexed == 0 || bodies < 1000 || inline < 300 {
		t.Errorf("%d plans: %d rests, %d times reindexed, %d large values and %d small ones", plans, rests, reindexed, bodies, inline)
	}
}
