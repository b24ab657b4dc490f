package storetest

import (
	"bytes"
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/dbadapter"
)

// testModel does random operations on the store and on the twin. After each it compares
// all that both say. rapid prints the seed of a failure, and shrinks it.
func testModel(t *testing.T, h Harness) {
	store := h.Open(t, manyChanges)
	t.Cleanup(func() { store.Close() })
	number := 0
	rapid.Check(t, func(rt *rapid.T) {
		number++
		m := &model{env: &env{TB: t, harness: h, store: store, hasher: Weak(hasher(), rapid.IntRange(0, 6).Draw(rt, "bits"))}}
		m.begin(number)
		defer func() {
			store = m.store
			m.namespace.Close()
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"apply":    m.apply,
			"apply 2":  m.apply, // three times as often as the rest
			"apply 3":  m.apply,
			"snapshot": m.snapshot,
			"look":     m.look,
			"scan":     m.scan,
			"log":      func(*rapid.T) { m.checkLog(manyChanges) },
			"lower":    m.lower,
			"raise":    m.raise,
			"forget":   m.forget,
			"reopen":   m.reopen,
		})
	})
}

type model struct {
	*env
	kept []keptSnapshot
}

type keptSnapshot struct {
	snapshot dbadapter.Snapshot
	twin     *twin
}

var (
	modelKeys   = []string{"a", "b", "aa", "ab", "a\x00", "\x00", "\xff", "\xff\xff", "c", "d", "e", "f"}
	modelValues = []string{"", "x", "y", "longer"}
)

func (m *model) apply(t *rapid.T) {
	writes := rapid.SliceOfN(rapid.Custom(m.write), 0, 8).Draw(t, "writes")
	if _, err := m.tryApply(writes); err != nil {
		t.Fatal(err)
	}
}

func (m *model) write(t *rapid.T) write {
	w := write{Record: dbadapter.Record{
		Key:     []byte(rapid.SampledFrom(modelKeys).Draw(t, "key")),
		Version: modelVersion(t),
		Deleted: rapid.IntRange(0, 4).Draw(t, "deleted") == 0,
	}}
	if !w.Record.Deleted {
		w.Record.Value = []byte(rapid.SampledFrom(modelValues).Draw(t, "value"))
		w.Record.Expires = dbadapter.Timestamp(rapid.Uint64Range(0, 1).Draw(t, "expires") << 16)
	}
	if held, ok := m.twin.records[string(w.Record.Key)]; ok && rapid.Bool().Draw(t, "knows the held one") {
		w.Record.Replace(&held)
	} else if w.Record.Version.Writer != 0 && rapid.IntRange(0, 2).Draw(t, "replaces") == 0 {
		w.Record.Replaces = []dbadapter.Replaced{{Writer: 3, Clock: dbadapter.Timestamp(rapid.Uint64Range(1, 2).Draw(t, "replaced"))}}
	}
	if rapid.IntRange(0, 3).Draw(t, "signed") == 0 { // a signature does not change what a record says
		w.Record.Signature = bytes.Repeat([]byte{rapid.Byte().Draw(t, "signature")}, dbadapter.SignatureSize)
	}
	switch rapid.IntRange(0, 19).Draw(t, "if") {
	case 0:
		w.If = new(dbadapter.Version)
	case 1:
		v := modelVersion(t)
		w.If = &v
	case 2, 3:
		v := m.twin.records[string(w.Record.Key)].Version
		w.If = &v
	}
	if w.If != nil && rapid.Bool().Draw(t, "replace") {
		w.Action = dbadapter.Replace
	}
	w.Must = rapid.IntRange(0, 9).Draw(t, "must") == 0
	if rapid.Bool().Draw(t, "past") {
		w.Past = modelVersion(t).Clock
	}
	if rapid.IntRange(0, 3).Draw(t, "removes") == 0 {
		w.Action = rapid.SampledFrom([]dbadapter.Action{dbadapter.Collect, dbadapter.SetAside}).Draw(t, "action")
		if held, ok := m.twin.records[string(w.Record.Key)]; ok && rapid.IntRange(0, 3).Draw(t, "the held one") > 0 {
			w.Record = held
		}
	}
	return w
}

func modelVersion(t *rapid.T) dbadapter.Version {
	v := at(100 * rapid.IntRange(0, 4).Draw(t, "second"))
	v.Writer = dbadapter.WriterID(rapid.IntRange(0, 3).Draw(t, "writer"))
	v.Incarnation = rapid.Uint64Range(0, 2).Draw(t, "incarnation")
	return v
}

func (m *model) snapshot(t *rapid.T) {
	if len(m.kept) == 3 {
		m.kept[0].snapshot.Close()
		m.kept = m.kept[1:]
	}
	m.kept = append(m.kept, keptSnapshot{m.env.snapshot(), m.twin.clone()})
}

func (m *model) lower(t *rapid.T) {
	to := m.twin.greatest()
	if rapid.Bool().Draw(t, "above") {
		to = m.twin.ceiling() + 1
	}
	if err := m.namespace.Lower(context.Background(), to); err != nil {
		t.Fatal(err)
	}
	m.twin.lower(to)
}

func (m *model) raise(t *rapid.T) {
	to := modelVersion(t).Clock + 1
	if err := m.namespace.Raise(context.Background(), to); err != nil {
		t.Fatal(err)
	}
	m.twin.raised = max(m.twin.raised, to)
}

func (m *model) forget(t *rapid.T) {
	seqs := rapid.SliceOfN(rapid.Uint64Range(0, m.twin.keptSeq+1), 0, 4).Draw(t, "seqs")
	if err := m.namespace.Forget(context.Background(), seqs...); err != nil {
		t.Fatal(err)
	}
	m.twin.forget(seqs)
}

func (m *model) look(t *rapid.T) {
	if len(m.kept) == 0 {
		t.Skip("no snapshot is open")
	}
	k := rapid.SampledFrom(m.kept).Draw(t, "snapshot")
	if err := k.twin.compare(k.snapshot); err != nil {
		t.Fatalf("an older snapshot: %v", err)
	}
}

func (m *model) scan(t *rapid.T) {
	s := m.env.snapshot()
	defer s.Close()
	prefix := []byte(rapid.SampledFrom(append(modelKeys, "")).Draw(t, "prefix"))
	after := []byte(rapid.SampledFrom(append(modelKeys, "")).Draw(t, "after"))
	got, err := m.twin.scan(context.Background(), s, prefix, after)
	if err != nil {
		t.Fatal(err)
	}
	if err := same("Scan", got, m.twin.sorted(prefix, after)); err != nil {
		t.Fatal(err)
	}
}

func (m *model) reopen(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") != 0 { // it is slow on a disk
		t.Skip("not this time")
	}
	m.kept = nil
	m.env.reopen()
}

func (m *model) check(t *rapid.T) {
	if err := m.compare(); err != nil {
		t.Fatal(err)
	}
}
