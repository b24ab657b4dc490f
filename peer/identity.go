package peer

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/signature"
)

// identity is the key that signs the node's connections and records, and the
// node's id.
type identity struct {
	key    crypto.PrivKey
	id     ID
	signer *signature.Signer
}

func newIdentity(key crypto.PrivKey) (identity, error) {
	id, raw, err := folder.CheckKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{key, id, signature.NewSigner(raw)}, nil
}

// sign makes the signature of a record or of a statement.
func (i *identity) sign(message []byte) ([]byte, error) { return i.signer.Sign(message), nil }

func (i *identity) signAll(messages [][]byte) [][]byte { return i.signer.SignAll(messages) }

// ownKey reads the key in the node's folder, and makes one where no node has been yet.
func (n *Node) ownKey(ctx context.Context) (crypto.PrivKey, error) {
	key, err := folder.LoadKey(n.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	ids, dropped, failed := folder.List(n.dir)
	sets, err := n.setsInStore(ctx)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	if len(ids)+len(dropped)+len(sets) > 0 {
		return nil, durable.Damaged(filepath.Join(n.dir, folder.KeyFile), "is missing, and the data directory has namespaces: %s", folder.OtherKey)
	}
	return folder.FreshKey(n.dir)
}

// owner is the node's id as its files have it.
func (n *Node) owner() string { return n.self.id.String() }

// expected is whose files the node loads; empty: any node's, which it makes its own.
func (n *Node) expected() string {
	if n.renewed {
		return ""
	}
	return n.owner()
}

// checkID refuses the ids of keys that are not Ed25519. Only ids of such keys hold
// them, and records are verified by the writer's id.
func checkID(id ID) error {
	_, err := node.ID(id).PublicKey()
	return err
}
