package node

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
)

// Partners are the peers that can be reached, with all that is shared with each. They are a
// function of their input: the same peers have their turns in the same order.
func TestPartners(t *testing.T) {
	var orders [2]string
	for i := range orders {
		m := newMachine(1)
		for n := range 5 {
			ns := must(m.open([32]byte{byte(n)}, must(m.Found([32]byte{byte(n)}, fmt.Sprint(n), Policy{}))))
			for seed := 2; seed < 10-n; seed++ {
				succeeds(t, setRole(ns, idOf(seed), RoleRead))
			}
		}
		partners := m.Partners(func(id ID) bool { return id != idOf(2) })
		parts := 0
		for _, turn := range partners {
			orders[i] += turn.Remote.String()
			parts += len(turn.Parts)
			for _, p := range turn.Parts {
				orders[i] += " " + p.ns.Members().Name()
			}
		}
		if len(partners) != 7 || parts != 5+5+5+4+3+2+1 {
			t.Errorf("%d partners, %d parts", len(partners), parts)
		}
	}
	if orders[0] != orders[1] {
		t.Errorf("two equal rounds:\n%s\n%s", orders[0], orders[1])
	}
}

// A shard seeks while it has still to be found equal under its row: its move waits for syncs.
func TestMovesSeek(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0}, []placement.Shard{0})
	m, set, remote := c.machines[0], c.set(0, 0), c.machines[1].ID
	if set.Seeks() || m.Seeking() {
		t.Error("it seeks at rest")
	}
	set.tenure.goes(&quorum.Row{Epoch: 2, Old: []ID{remote}, New: []ID{m.ID}})
	if !set.Seeks() || !m.Seeking() {
		t.Error("a shard that moves does not seek")
	}
}
