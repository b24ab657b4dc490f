package node

import (
	"crypto/sha256"
	"slices"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
)

// Row is the row of a shard by which this node goes; nil: none is known.
func (ns *Namespace) Row(shard placement.Shard) *quorum.Row {
	layout := ns.placed.Load().last
	if layout == nil {
		return nil
	}
	hosts := slices.Sorted(slices.Values(layout.Hosts(shard)))
	return &quorum.Row{Shard: uint16(shard), Epoch: 1, Old: hosts, New: hosts}
}

// Gone is a digest of the removals and lapses that are known.
func (ns *Namespace) Gone() (gone [8]byte) {
	var b []byte
	for _, m := range ns.Members().List.FormerMembers() {
		b = append(b, m.ID...)
	}
	sum := sha256.Sum256(b)
	copy(gone[:], sum[:])
	return gone
}
