package roster

import "testing"

// A member is granted, changed, removed and granted again; its versions count
// while it may write.
func TestMembersComeAndGo(t *testing.T) {
	s := founded(t)          // 100
	s.grant(0, 1, RoleAdmin) // 101
	s.grant(1, 2, RoleWrite) // 102
	s.grant(0, 3, RoleRead)  // 103
	s.roles(RoleAdmin, RoleAdmin, RoleWrite, RoleRead)
	s.remove(1, 2) // 104
	s.roles(RoleAdmin, RoleAdmin, 0, RoleRead)
	f, ok := s.List().Former(idOf(2))
	if !ok || f.RemovedBy != idOf(1) || f.At != 104 {
		t.Errorf("former: %+v", f)
	}
	s.grant(0, 2, RoleWrite) // 105
	w := must(idOf(2).Writer())
	for clock, want := range map[uint64]bool{1: true, 103: true, 104: true, 105: true, 1 << 60: true} {
		if got := s.List().MayWrite(w, dbTime(clock)); got != want {
			t.Errorf("a version at %d: %v", clock, got)
		}
	}
	m, _ := s.List().Member(idOf(2))
	if m.Epoch != 1 || m.By != idOf(0) || m.Since != 105 {
		t.Errorf("%+v", m)
	}
}
