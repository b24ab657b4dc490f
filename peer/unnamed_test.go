package peer

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Records of which no key is known are gone, and a member writes as many others: these
// are not taken for what was lost.
func TestUnnamedLossStays(t *testing.T) {
	a, b := openForTest(t, Config{NoPush: true}), openForTest(t, Config{NoPush: true})
	ours, err := a.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := ours.Invite(t.Context(), InviteOptions{Role: RoleWrite})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.Join(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.core.MayLack(); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.core.Salvaged(t.Context(), dbadapter.Loss{Records: 5}, dbadapter.Loss{}, false); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if _, err := theirs.Put(t.Context(), fmt.Appendf(nil, "new %d", i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Connect(t.Context(), b.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	r, err := ours.Repair(t.Context())
	if err != nil || r.Regained != 6 || r.Lost == nil || r.Lost.Unnamed != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := ours.AcceptLoss(); err != nil || ours.Lost() != nil {
		t.Errorf("%v, %+v", err, ours.Lost())
	}
}
