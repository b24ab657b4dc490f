package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// whole has each verb and setting, and prose, in canonical form.
const whole = `# The prose above.
#
#   with an indented line
name all-verbs
nodes 5
seed 18446744073709551615
net delay=10ms jitter=30ms loss=0.01 duplicate=0.002 reorder=1
every 5s
skew 1m
checksums 2
indices 9
ground g
log 30
signed
alone

at 0s put 2 key7 100B
at 1.5s put 2 a/b:c.d "two words \"quoted\" \x00\n"
at 1.5s put 0 empty 0B
at 2s dated 2 key7 100B
at 2s expiring 2 key7 100B for 30s
at 2s expiring 2 key7 "two  words for 3s" for 1h
at 2s backdate 2 key7 100B by 1h
at 2s del 2 key7
at 2s touch 2 key7
at 3s batch 2 k 40 1KiB
at 4s sync 0>1
at 4s pull 0>1
at 4s push 1>0
at 4s diff 1>0
at 4s send-all 0>1
at 4s sync-prefix 1>0 key
at 5s replay 0>1
at 5s join 1>0
at 5s join 1>0 admin
at 5s redeem 1>0
at 5s role 0>2 read
at 5s term 0>2 write for 5m
at 5s remove 0>2
at 5s remove 2>2
at 5s lapse 0>2
at 6s crash 2
at 6.001s crash-at 3 apply
at 7s why 0>1 k7
at 7s wait 0>1 for 30s
at 7s wait-all 0 for 31s
at 7s wait-key 0 k7 2 for 32s
at 7s status 0>1
at 7s watch 2 w from=start prefix=k1 pace=2s
at 7s unwatch 2 w
at 7s watch 2 w
at 7s crash-answering 2
at 7s start 2
at 8s freeze 2 for 3s
at 9s skew 2 -1m30s
at 9s skew 2 +2h
at 10s stopclock 2 for 10s
at 10s restamp 2
at 11s cut 0>1
at 12s heal 0>1
at 13s partition 0,1|2,3|4
at 14s healall
at 15s loss 0>1 0.05
at 16s copy 2
at 17s restore 2
at 17s restore-backup 2
at 18s flip 2 1000
at 18s flip-cell 2 1001
at 18s flip-sum 2 1002
at 18s phantom 2 7
at 18s false-peel 0>1
at 18s short-check 0>1
at 19s full 2 for 10s
at 20s old 2
at 20s lie 2
at 21s new 2
at 22s random writes=200 keys=50 size=2KiB syncs=4 members=7 asks=3 faults=20 profile=rough for 1m

settle 2m
expect converged
expect corrupt 1
expect corrupt 2
expect cause declined here: floor
expect cause lapsed
expect refused full
expect refused future
`

func TestParse(t *testing.T) {
	p, err := Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != whole {
		t.Errorf("printed as\n%s", got)
	}
	if p.Nodes != 5 || p.Seed != 1<<64-1 || !p.Signed || !p.Alone || p.Checksums != 2 || p.Indices != 9 || p.Ground != "g" || p.Every != 5*time.Second || p.Skew != time.Minute || p.Settle != 2*time.Minute {
		t.Errorf("settings: %+v", p)
	}
	if want := (Net{10 * time.Millisecond, 30 * time.Millisecond, 0.01, 0.002, 1}); p.Net != want {
		t.Errorf("net %+v", p.Net)
	}
	if want := []string{"The prose above.", "", "  with an indented line"}; !reflect.DeepEqual(p.Prose, want) {
		t.Errorf("prose %q", p.Prose)
	}
	if want := (Expect{Corrupt: []int{1, 2}, Causes: []string{"declined here: floor", "lapsed"}, Refused: []Refusal{"full", "future"}}); !reflect.DeepEqual(p.Expect, want) {
		t.Errorf("expect %+v", p.Expect)
	}
	events := map[Verb]Event{}
	for _, e := range p.Events {
		events[e.Verb] = e
	}
	if len(events) != len(Verbs())-7 { // get, hide, invent, putif, import, scan and reindex are for shards
		t.Errorf("%d of %d verbs", len(events), len(Verbs()))
	}
	s := time.Second
	for _, want := range []Event{
		{At: 3 * s, Verb: Batch, Node: 2, Key: "k", Amount: 40, Size: 1024},
		{At: 2 * s, Verb: Expiring, Node: 2, Key: "key7", Value: "two  words for 3s", For: time.Hour},
		{At: 2 * s, Verb: Backdate, Node: 2, Key: "key7", Size: 100, For: time.Hour},
		{At: 5 * s, Verb: Join, Node: 1, Peer: 0, Key: "admin"},
		{At: 5 * s, Verb: Term, Node: 0, Peer: 2, Key: "write", For: 5 * time.Minute},
		{At: 5 * s, Verb: Remove, Node: 2, Peer: 2},
		{At: 4 * s, Verb: Push, Node: 1, Peer: 0},
		{At: 4 * s, Verb: SyncPrefix, Node: 1, Peer: 0, Key: "key"},
		{At: 6*s + time.Millisecond, Verb: CrashAt, Node: 3, Step: reconcile.StepApply},
		{At: 7 * s, Verb: Why, Node: 0, Peer: 1, Key: "k7"},
		{At: 7 * s, Verb: Wait, Node: 0, Peer: 1, For: 30 * s},
		{At: 7 * s, Verb: WaitAll, For: 31 * s},
		{At: 7 * s, Verb: WaitKey, Key: "k7", Amount: 2, For: 32 * s},
		{At: 7 * s, Verb: Status, Node: 0, Peer: 1},
		{At: 7 * s, Verb: Unwatch, Node: 2, Key: "w"},
		{At: 7 * s, Verb: CrashAnswering, Node: 2},
		{At: 8 * s, Verb: Freeze, Node: 2, For: 3 * s},
		{At: 9 * s, Verb: Skew, Node: 2, Amount: 7_200_000},
		{At: 13 * s, Verb: Partition, Key: "0,1|2,3|4"},
		{At: 15 * s, Verb: Loss, Node: 0, Peer: 1, Amount: 50},
		{At: 18 * s, Verb: Flip, Node: 2, Amount: 1000},
		{At: 18 * s, Verb: FlipSum, Node: 2, Amount: 1002},
		{At: 18 * s, Verb: FalsePeel, Node: 0, Peer: 1},
		{At: 22 * s, Verb: Expand, For: 60 * s, Random: Random{Writes: 200, Keys: 50, Size: 2048, Syncs: 4, Members: 7, Asks: 3, Faults: 20, Profile: Rough}},
	} {
		if got := events[want.Verb]; got != want {
			t.Errorf("%s: %+v, want %+v", want.Verb, got, want)
		}
	}
	if e := p.Events[1]; e.Value != "two words \"quoted\" \x00\n" || e.Key != "a/b:c.d" {
		t.Errorf("put %s", e.String())
	}
}

// Other spellings than the printed ones.
func TestParseForms(t *testing.T) {
	p, err := Parse("\n nodes\t4 \r\n#a\n\nat 0.5m  partition 3,1|2,0\nat 90s put 0 k 2048B\nsettle 60s\nexpect refused version\nexpect refused full\nexpect refused full")
	if err != nil {
		t.Fatal(err)
	}
	want := "nodes 4\nseed 1\nskew 1m\n\nat 30s partition 0,2|1,3\nat 1m30s put 0 k 2KiB\n\nsettle 1m\nexpect converged\nexpect refused full\nexpect refused version\n"
	if got := p.String(); got != want {
		t.Errorf("%s", got)
	}
	if g := p.Events[0].Groups(); !reflect.DeepEqual(g, [][]int{{0, 2}, {1, 3}}) {
		t.Errorf("groups %v", g)
	}
	if p, err = Parse(""); err != nil || p.Nodes != DefaultNodes || p.Seed != 1 || p.Skew != DefaultSkew || p.Settle != DefaultSettle {
		t.Errorf("an empty text: %+v, %v", p, err)
	}
}

// Each error names its line and says what should stand there.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nodes 3\nfrob", `line 2: unknown word "frob"; a line begins with #, at, expect, name, nodes`},
		{"nodes 0", `line 1: nodes "0": want a number from 1 to 1000`},
		{"nodes 1001", `from 1 to 1000`},
		{"nodes 99999999999999999999", `from 1 to 1000`},
		{"nodes 2\nnodes 3", `line 2: "nodes" stands here for the second time`},
		{"at 1s crash 0\nnodes 3", `line 2: "nodes" stands below an event`},
		{"expect corrupt 2\nnodes 2", `line 2: "nodes" stands below`},
		{"seed -1", `seed "-1": want a number from 0 to 2^64−1`},
		{"name two words", `name "two words": want letters`},
		{"signed yes", `"yes" follows "signed"`},
		{"every 0s", `every "0s": want a time from 1ms to 8760h, as in`},
		{"settle -1s", `settle "-1s": want a time`},
		{"net", "want parts as in delay=10ms"},
		{"net delay", `part "delay": want name=value`},
		{"net speed=1", `unknown part "speed"; net has delay, jitter`},
		{"net delay=2h", `delay "2h": want a time from 0s to 1h`},
		{"net loss=1.5", `loss "1.5": want a share from 0 to 1`},
		{"net loss=NaN", `loss "NaN": want a share`},
		{"net loss=0.1 loss=0.2", `"loss" stands twice`},
		{"at 1s frob 1", `unknown verb "frob"; the verbs are put, putif, del, touch, dated, expiring`},
		{"at noon crash 1", `time "noon": want a time`},
		{"at -1s crash 1", `time "-1s"`},
		{"at 2s crash 1\n\nat 1s start 1", "line 3: 1s comes after 2s; events stand in order of time"},
		{"at 1s crash 3", "node 3: there are the nodes 0 to 2"},
		{"at 1s crash 1 2", `crash: "2" is too much`},
		{"at 1s crash", `crash: node "": want a number from 0 to 999; write it as in "at 1s crash 2"`},
		{"at 1s freeze 1", `want "for" and a time at the end; write it as in "at 1s freeze 2 for 3s"`},
		{"at 1s freeze 1 for 0s", `for "0s": want a time from 1ms`},
		{"at 1s cut 0-1", `link "0-1": want two nodes, as in 0>1`},
		{"at 1s role 0>1 king", `role "king": want read, write or admin`},
		{"at 1s join 0>1 king", `role "king": want read, write or admin`},
		{"at 1s join 1>1", "the link 1>1 leads from a node to itself"},
		{"at 1s term 0>1 write", `want "for" and a time at the end; write it as in "at 1s term 0>2 write for 3s"`},
		{"at 1s backdate 1 k 1B for 1h", `want "by" and a time at the end`},
		{"at 1s remove 0>1 now", `"now" is too much`},
		{"at 1s remove 0>9", "node 9: there are"},
		{"at 1s role 0>9 read", "node 9: there are"},
		{"at 1s cut 1>1", "the link 1>1 leads from a node to itself"},
		{"at 1s cut 0>9", "node 9: there are"},
		{"at 1s loss 0>1 0.0001", "want steps of 0.001"},
		{"at 1s put 1 k", `size "": want a size from 0B to 1MiB`},
		{"at 1s put 1 k 2MiB", `size "2MiB"`},
		{"at 1s put 1 k -1B", `size "-1B"`},
		{"at 1s put 1 ключ 1B", `key "ключ": want letters, digits`},
		{"at 1s put 1 " + strings.Repeat("k", 201) + " 1B", "the key has 201 bytes; it has at most 200"},
		{"at 1s put 1 k \"open", `value "open: want a string of Go`},
		{"at 1s put 1 k \"" + strings.Repeat("v", 1<<20+1) + "\"", "the value has 1048577 bytes"},
		{"at 1s batch 1 k 5000 1B", `count "5000": want a number from 1 to 4096`},
		{"at 1s batch 1 k 100 1MiB", "the batch has 104858200 bytes"},
		{"at 1s watch 1", "the program is missing"},
		{"at 1s watch 1 w from=now", `from "now": want start`},
		{"at 1s watch 1 w prefix=", "the prefix is missing"},
		{"at 1s watch 1 w pace=0s", `pace "0s": want a time from 1ms to 1h`},
		{"at 1s watch 1 w speed=1", `unknown part "speed"; watch has from, prefix, pace; write it as in "at 1s watch 2 w from`},
		{"log 0", `log "0": want a number from 1`},
		{"at 1s crash-at 1 dance", `unknown step "dance"; the steps are sketch, subtract, peel, fetch, apply, verify`},
		{"at 1s skew 1 1us", `want whole milliseconds`},
		{"at 1s skew 1 9000h", `skew "9000h": want a time from -8760h to 8760h`},
		{"at 1s partition 0,1|1,2", "a node stands in two of them"},
		{"at 1s partition 0|x", `groups "0|x": want nodes, as in 0,1|2,3`},
		{"at 1s flip 1 -5", `bit "-5": want a number`},
		{"at 1s healall 1", `"1" is too much; write it as in "at 1s healall"`},
		{"at 1s random writes=10", `want "for" and a time`},
		{"at 1s random for 5s", "want parts"},
		{"at 1s random jokes=3 for 5s", `unknown part "jokes"; random has writes`},
		{"at 1s random faults=1 profile=wild for 5s", `unknown profile "wild"; the profiles are calm, rough`},
		{"nodes 1\nat 1s random syncs=1 for 5s", "needs two nodes"},
		{"nodes 1\nat 1s random members=1 for 5s", "needs two nodes"},
		{"at 1s random writes=60000 for 5s\nat 1s random writes=60000 for 5s", "line 2: there are more than 100000 events"},
		{"at 1s random writes=100000 size=1MiB for 5s", "have more than 1073741824 bytes"},
		{strings.Repeat("at 1s healall\n", MaxEvents+1), "line 100001: there are more than 100000 events"},
		{strings.Repeat("at 1s batch 0 k 4096 0B\n", 5000), "have more than 1073741824 bytes"},
		{"expect peace", `unknown expectation "peace"; it is one of cause`},
		{"expect cause", "the cause is missing"},
		{"expect converged now", `"now" follows "converged"`},
		{"expect corrupt 3", `node "3": want a number from 0 to 2`},
		{"expect refused tea", `unknown reason "tea"; the reasons are denied, expired, full`},
		{"expect violation", "the rule is missing"},
		{"expect violation a\nexpect violation b", "expected already"},
		{"expect violation a\nexpect converged", "not both"},
		{"# \x00", "bytes that are no text"},
		{"# \xff", "bytes that are no text"},
	} {
		_, err := Parse(c.text)
		if !errors.Is(err, ErrText) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v\n\twant %s", c.text, err, c.want)
		}
	}
}

func TestParseSize(t *testing.T) {
	if _, err := Parse(strings.Repeat("\n", MaxText+1)); !errors.Is(err, ErrText) {
		t.Errorf("a text over MaxText: %v", err)
	}
	if _, err := Parse("#" + strings.Repeat("x", MaxLine)); !errors.Is(err, ErrText) {
		t.Errorf("a line over MaxLine: %v", err)
	}
}

// FuzzParse: a plan that was read prints in a form that reads back to the same
// plan, prints the same again, and expands within bounds.
func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add(cut)
	f.Add("nodes 2\nat 1s random writes=9 faults=9 for 1ms\nexpect violation durable\n#x\n\n#")
	f.Add("net loss=-0\n# one\nat 0s put 0 k \"\"\n#\nat 1e0s partition 0|1")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrText) {
				t.Fatalf("not an ErrText: %v", err)
			}
			return
		}
		printed := p.String()
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%v, of\n%s", err, printed)
		}
		if again.String() != printed || !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v\nis printed as\n%s\nand reads back as\n%+v", p, printed, again)
		}
		if n := len(p.Events); n > 0 && p.Events[n-1].Random.Writes > 1000 {
			return
		}
		e := p.Expand()
		if err := e.Validate(); err != nil {
			t.Fatalf("the expanded plan: %v", err)
		}
	})
}
