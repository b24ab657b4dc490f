package peer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// stateOf is all that a namespace holds and has noted, but for the syncs that were held.
func stateOf(t *testing.T, ns *Namespace) string {
	t.Helper()
	var b bytes.Buffer
	for what, part := range map[string]*node.Part{"data": &ns.shards()[0].set.Part, "control": &ns.core.Control} {
		snap, err := part.Store.Snapshot()
		must(t, err)
		for r, err := range snap.Scan(t.Context(), nil, nil) {
			must(t, err)
			fmt.Fprintf(&b, "%s %+v\n", what, r)
		}
		snap.Close()
		for c, err := range part.Store.Changes(t.Context(), 0) {
			must(t, err)
			fmt.Fprintf(&b, "%s %+v\n", what, c)
		}
		for k, err := range part.Store.Kept(t.Context()) {
			must(t, err)
			fmt.Fprintf(&b, "%s %+v\n", what, k)
		}
		fmt.Fprintln(&b, part.Store.Latest(), part.Store.Ceiling())
	}
	lines := bytes.Split(b.Bytes(), []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	members := ns.Members()
	slices.SortFunc(members, func(a, b Member) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	return fmt.Sprintf("%s\n%+v\n%+v", bytes.Join(lines, []byte("\n")), ns.Info(), members)
}

// diverge makes two namespaces differ in all ways, and returns what is to be listed at
// the first.
func diverge(t *testing.T, sa, sb *Namespace, n int) map[string]reconcile.KeyKind {
	t.Helper()
	put := func(ns *Namespace, key, value string) {
		t.Helper()
		must(t, errOf(ns.Put(t.Context(), []byte(key), []byte(value))))
	}
	for i := range n {
		put(sa, fmt.Sprintf("both/%d", i), "old")
	}
	must(t, errOf(sa.Sync(t.Context(), sb.node.ID(), SyncOptions{})))
	want := map[string]reconcile.KeyKind{}
	for i := range n {
		key := fmt.Sprintf("both/%d", i)
		switch i % 7 {
		case 0:
			put(sa, key, "new")
			want[key] = reconcile.NewerHere
		case 1:
			put(sb, key, "new")
			want[key] = reconcile.NewerThere
		case 2:
			must(t, errOf(sb.Delete(t.Context(), []byte(key))))
			want[key] = reconcile.NewerThere
		case 3:
			put(sa, key, "a's")
			put(sb, key, "b's")
			want[key] = reconcile.Conflict
		case 4:
			put(sa, "a/"+key, "value")
			want["a/"+key] = reconcile.MissingThere
		case 5:
			put(sb, "b/"+key, "value")
			want["b/"+key] = reconcile.MissingHere
		}
	}
	return want
}

// What is listed is what differs, with the versions that both sides hold, also where the
// differences are so many that they are found part by part; neither side is changed by it.
func TestDiffKeys(t *testing.T) {
	for _, bulk := range []syncing.Bulk{{}, {PartsFrom: 100, PartSize: 30}} {
		a, b := openForTest(t, Config{}), openForTest(t, Config{})
		sa := createForTest(t, a, Policy{})
		sb := joinForTest(t, sa, b, RoleWrite)
		want := diverge(t, sa, sb, 350)
		for _, n := range []*Node{a, b} {
			n.core.Bulk = bulk
		}
		before := [2]string{stateOf(t, sa), stateOf(t, sb)}
		for _, prefix := range []string{"", "both/1"} {
			got := map[string]reconcile.KeyKind{}
			report, err := sa.DiffKeys(t.Context(), b.ID(), DiffOptions{Prefix: []byte(prefix)}, func(d reconcile.KeyDifference) error {
				if got[string(d.Key)] != 0 {
					t.Errorf("%q was listed twice", d.Key)
				}
				got[string(d.Key)] = d.Kind
				for ns, head := range map[*Namespace]reconcile.Head{sa: d.Here, sb: d.There} {
					var held reconcile.Head
					for r, err := range ns.Scan(t.Context(), d.Key, WithTombstones()) {
						if err == nil && bytes.Equal(r.Key, d.Key) {
							held = reconcile.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires}
						}
					}
					if held != head {
						t.Errorf("%q: listed as %+v, held is %+v", d.Key, head, held)
					}
				}
				return nil
			})
			expected := map[string]reconcile.KeyKind{}
			for key, kind := range want {
				if bytes.HasPrefix([]byte(key), []byte(prefix)) {
					expected[key] = kind
				}
			}
			if err != nil || !report.Verified || report.Keys != len(expected) || report.Differences() != len(expected) || report.MoreKeys || report.RecordBytes > 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if prefix == "" && bulk.PartsFrom > 0 && report.Parts < 5 {
				t.Errorf("went in %d parts", report.Parts)
			}
			if !reflect.DeepEqual(got, expected) {
				t.Errorf("listed %v, want %v", got, expected)
			}
		}
		if after := [2]string{stateOf(t, sa), stateOf(t, sb)}; before != after {
			t.Errorf("a listing changed a side:\n%s\n\n%s", before, after)
		}
	}
}

// A limit ends a listing, and so does an error of its caller, without harm to either side.
func TestDiffKeysEnds(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	want := diverge(t, sa, sb, 350)
	for _, n := range []*Node{a, b} {
		n.core.Bulk = syncing.Bulk{PartsFrom: 100, PartSize: 30}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	limit := 1 + rand.New(rand.NewPCG(seed, 1)).IntN(len(want)-1)
	took := 0
	report, err := sa.DiffKeys(t.Context(), b.ID(), DiffOptions{Limit: limit}, func(reconcile.KeyDifference) error { took++; return nil })
	if err != nil || took != limit || report.Keys != limit || !report.MoreKeys {
		t.Errorf("with the limit %d: %d keys, %+v, %v", limit, took, report, err)
	}
	for _, limit := range []int{len(want), len(want) + 1} {
		if report, err := sa.DiffKeys(t.Context(), b.ID(), DiffOptions{Limit: limit}, func(reconcile.KeyDifference) error { return nil }); err != nil || report.MoreKeys || report.Keys != len(want) {
			t.Errorf("with the limit %d of %d: %+v, %v", limit, len(want), report, err)
		}
	}
	failed := errors.New("the caller fails")
	if _, err := sa.DiffKeys(t.Context(), b.ID(), DiffOptions{}, func(reconcile.KeyDifference) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a caller that fails: %v", err)
	}
	eventually(t, "all syncs have ended", func() bool { return a.running.Load()+b.running.Load() == 0 })
	must(t, errOf(sa.Sync(t.Context(), b.ID(), SyncOptions{})))
	if report, err := sa.DiffKeys(t.Context(), b.ID(), DiffOptions{}, func(d reconcile.KeyDifference) error { return fmt.Errorf("%q is listed", d.Key) }); err != nil || report.Keys != 0 || !report.Verified {
		t.Errorf("of equal sets: %+v, %v", report, err)
	}
	if contents(t, sa)["both/3"].Version != contents(t, sb)["both/3"].Version {
		t.Error("the sides are not equal")
	}
}
