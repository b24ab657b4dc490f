package peer

import (
	"context"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
)

// Force stores records past all checks, as a hostile or broken node would.
func (ns *Namespace) Force(ctx context.Context, records ...dbadapter.Record) error {
	var writes []dbadapter.Write
	for _, r := range records {
		hashed, err := dbadapter.Hash(ns.keys.Hasher, r)
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: hashed})
	}
	_, err := ns.store.Apply(ctx, writes)
	return err
}

// Latest is the greatest clock that the namespace holds.
func (ns *Namespace) Latest() dbadapter.Timestamp { return ns.store.Latest() }

// Writer is the id that the node's versions carry.
func (n *Node) Writer() dbadapter.WriterID { return n.self.writer }

// Key is the node's identity.
func (n *Node) Key() crypto.PrivKey { return n.self.key }
