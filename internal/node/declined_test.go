package node

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a peer has refused is offered again after a while.
func TestDeclinedExpires(t *testing.T) {
	var d declined
	first := d.by("a", noon)
	if d.by("a", noon.Add(DeclinedLife-1)) != first || d.by("b", noon) == first {
		t.Error("it is forgotten too early, or shared")
	}
	second := d.by("a", noon.Add(DeclinedLife))
	if second == first {
		t.Error("it is remembered for ever")
	}
	if d.by("a", noon.Add(2*DeclinedLife-1)) != second || d.by("a", noon.Add(2*DeclinedLife)) == second {
		t.Error("the second life is not as long as the first")
	}
	third := d.by("a", noon.Add(2*DeclinedLife))
	if d.forget(); d.by("a", noon.Add(2*DeclinedLife)) == third {
		t.Error("it was not forgotten")
	}
}

// finds is a sync that finds its differences before it sends anything. It needs a
// record on either side: an empty set is sent everything.
var finds = Ask{Method: wire.MethodSketch}

// declines makes two nodes of which a refuses a record of b, and has said so.
func declines(t *testing.T) (a, b *machine, sa, sb *Namespace) {
	t.Helper()
	a, b = newMachine(1), newMachine(2)
	sa = a.create("notes", Policy{})
	sb = must(b.join(a, invite(sa, RoleWrite)))
	must(put(sa, "shared", ""))
	if _, _, err := b.sync(sb, a, finds); err != nil {
		t.Fatal(err)
	}
	if err := sa.SetMember(b.ID, RoleRead); err != nil {
		t.Fatal(err)
	}
	must(put(sb, "k", "of b"))
	if r, _, err := b.sync(sb, a, finds); r.Sent != 1 || r.Rejected != 1 || r.Verified {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, _, err := b.sync(sb, a, finds); r.Sent != 0 || r.Rejected != 1 || r.Verified {
		t.Fatalf("again: %+v, %v", r, err)
	}
	return a, b, sa, sb
}

// A record that a peer has declined travels again when that is long ago, and as
// soon as its writer has joined again.
func TestDeclinedRecordsTravelAgain(t *testing.T) {
	t.Run("after its life", func(t *testing.T) {
		a, b, sa, sb := declines(t)
		if err := sa.SetMember(b.ID, RoleWrite); err != nil {
			t.Fatal(err)
		}
		b.clock = noon.Add(DeclinedLife - time.Second)
		if r, _, _ := b.sync(sb, a, finds); r.Sent != 0 {
			t.Errorf("too early: %+v", r)
		}
		b.clock = noon.Add(DeclinedLife)
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("in time: %+v, %v", r, err)
		}
	})
	t.Run("after its writer has joined again", func(t *testing.T) {
		a, b, sa, sb := declines(t)
		if again := must(b.join(a, invite(sa, RoleWrite))); again != sb {
			t.Error("another namespace was opened")
		}
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("%+v, %v", r, err)
		}
	})
	// The other side: a passes on what a writer has written that b does not know,
	// until b has joined again and so has a's list.
	t.Run("after the one that declined has joined again", func(t *testing.T) {
		a, b, c := newMachine(1), newMachine(2), newMachine(3)
		sa := a.create("notes", Policy{})
		sb := must(b.join(a, invite(sa, RoleRead)))
		sc := must(c.join(a, invite(sa, RoleWrite)))
		must(put(sa, "shared", ""))
		if _, _, err := b.sync(sb, a, finds); err != nil {
			t.Fatal(err)
		}
		must(put(sc, "k", "of c"))
		if r, _, err := c.sync(sc, a, finds); err != nil || !r.Verified {
			t.Fatalf("%+v, %v", r, err)
		}
		for round, sent := range []int{1, 0} {
			if r, _, _ := a.sync(sa, b, finds); r.Sent != sent || r.Rejected != 1 {
				t.Errorf("round %d: %+v", round, r)
			}
		}
		must(b.join(a, invite(sa, RoleRead)))
		if r, _, err := a.sync(sa, b, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("%+v, %v", r, err)
		}
		if r := must(get(sb, "k")); string(r.Value) != "of c" || sb.RejectedCount() != 0 {
			t.Errorf("b holds %+v, and remembers %d rejections", r, sb.RejectedCount())
		}
	})
	// A record that took a declined one's place is another.
	t.Run("written anew", func(t *testing.T) {
		a, b, sa, sb := declines(t)
		if err := sa.SetMember(b.ID, RoleWrite); err != nil {
			t.Fatal(err)
		}
		must(put(sb, "k", "of b, once more"))
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestRejectionsAreBounded(t *testing.T) {
	var rs rejections
	pair := func(i int) dbadapter.Pair { return dbadapter.Pair{Index: dbadapter.Index(i + 1), Checksum: 1} }
	for i := range MaxRejections + 10 {
		rs.add(pair(i), Rejection{Version: dbadapter.Version{Clock: dbadapter.Timestamp(i)}})
		rs.add(pair(i), Rejection{Version: dbadapter.Version{Clock: dbadapter.Timestamp(i)}, Reason: "the last"})
	}
	list := rs.list()
	if len(list) != MaxRejections || rs.count() != MaxRejections || list[0].Version.Clock != 10 || list[0].Reason != "the last" {
		t.Errorf("%d remembered, the first %+v", len(list), list[0])
	}
	for i, r := range list {
		if r.Version.Clock != dbadapter.Timestamp(i+10) {
			t.Fatalf("rejection %d is %+v", i, r)
		}
	}
	rs.remove(pair(20))
	rs.remove(pair(20))
	rs.remove(pair(5)) // it has given way
	if rs.count() != MaxRejections-1 || len(rs.list()) != MaxRejections-1 {
		t.Errorf("%d remembered", rs.count())
	}
	// What is handed out is the caller's.
	rs.add(pair(1<<20), Rejection{Key: []byte("key")})
	list = rs.list()
	list[len(list)-1].Key[0] = 'X'
	if again := rs.list(); string(again[len(again)-1].Key) != "key" {
		t.Error("a caller has changed what is remembered")
	}
}
