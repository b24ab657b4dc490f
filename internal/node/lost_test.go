package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// overtaken is a store in which something happens once a snapshot was opened.
type overtaken struct {
	dbadapter.Namespace
	by func()
}

func (o *overtaken) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := o.Namespace.Snapshot()
	if by := o.by; by != nil {
		o.by = nil
		by()
	}
	return snap, err
}

// loses notes a loss as a salvage does.
func loses(t *testing.T, ns *Namespace, data dbadapter.Loss) {
	t.Helper()
	if err := ns.MayLack(); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Salvaged(t.Context(), data, dbadapter.Loss{}, false); err != nil {
		t.Fatal(err)
	}
}

func named(keys ...string) (l dbadapter.Loss) {
	for _, k := range keys {
		l.Keys = append(l.Keys, []byte(k))
	}
	l.Records = int64(len(keys))
	return l
}

// While a node looks which of the lost keys hold a record again, it loses another one, and
// one of them once more; or a person accepts the loss. Neither is undone.
func TestRegainBesideALoss(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	for _, key := range []string{"one", "two"} {
		if _, err := put(ns, key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	store := &overtaken{Namespace: ns.Sets()[0].Store}
	ns.Sets()[0].Store = store

	loses(t, ns, named("one", "gone"))
	store.by = func() { loses(t, ns, named("three")) }
	if err := ns.Regain(); err != nil {
		t.Fatal(err)
	}
	if l := ns.Lost(); l == nil || fmt.Sprintf("%s", l.Keys) != "[gone three]" {
		t.Errorf("a loss that came meanwhile: it lists %+v", l)
	}

	store.by = func() {
		if err := ns.AcceptLoss(); err != nil {
			t.Error(err)
		}
	}
	if err := ns.Regain(); err != nil {
		t.Fatal(err)
	}
	if l := ns.Lost(); l != nil {
		t.Errorf("a loss that was accepted meanwhile: it lists %+v", l)
	}
}

// A loss that cannot be made durable, as on a full disk, is known all the same, and is
// made durable by the next look at it.
func TestLossOnAFullDisk(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	full, saved := errors.New("no space left on device"), (*State)(nil)
	if err := ns.MayLack(); err != nil {
		t.Fatal(err)
	}
	m.save = func(*State) error { return full }
	if _, err := ns.Salvaged(t.Context(), named("gone"), dbadapter.Loss{}, false); !errors.Is(err, full) {
		t.Fatalf("with a full disk: %v", err)
	}
	if l := ns.Lost(); l == nil || len(l.Keys) != 1 {
		t.Fatalf("with a full disk it lists %+v", l)
	}
	m.save = func(s *State) error { saved = s; return nil }
	if err := ns.Regain(); err != nil {
		t.Fatal(err)
	}
	if saved == nil || saved.Lost == nil || len(saved.Lost.Keys) != 1 {
		t.Fatalf("with room again the durable state is %+v", saved)
	}
	saved = nil
	if err := ns.Regain(); err != nil || saved != nil {
		t.Errorf("nothing came back, and the state was written again: %+v, %v", saved, err)
	}
}

// What no member can give back is no reason to ask them.
func TestWhatMembersCanGiveBack(t *testing.T) {
	for _, c := range []struct {
		name          string
		data, control dbadapter.Loss
		older, want   bool
	}{
		{"a key", named("k"), dbadapter.Loss{}, false, true},
		{"records without keys", dbadapter.Loss{Records: 3}, dbadapter.Loss{}, false, true},
		{"an unknown number", dbadapter.Loss{Records: -1}, dbadapter.Loss{}, false, true},
		{"statements", dbadapter.Loss{}, dbadapter.Loss{Records: 1}, false, true},
		{"older records", dbadapter.Loss{}, dbadapter.Loss{}, true, true},
		{"records set aside", dbadapter.Loss{Records: 1, SetAside: 1}, dbadapter.Loss{}, false, true},
		{"kept entries", dbadapter.Loss{Kept: 2}, dbadapter.Loss{}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := newMachine(1).create("notes", Policy{})
			if ns.Lost().Regainable() {
				t.Error("without a loss there is something to give back")
			}
			if err := ns.MayLack(); err != nil {
				t.Fatal(err)
			}
			if _, err := ns.Salvaged(t.Context(), c.data, c.control, c.older); err != nil {
				t.Fatal(err)
			}
			if got := ns.Lost().Regainable(); got != c.want {
				t.Errorf("it says %t", got)
			}
		})
	}
}
