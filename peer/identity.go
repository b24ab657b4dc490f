package peer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/signature"
)

// identityFile holds the node's key, in libp2p's binary form.
const identityFile = "identity.key"

// identity is the key that signs the node's connections and records, and the
// node's id.
type identity struct {
	key    crypto.PrivKey
	id     ID
	signer *signature.Signer
}

func newIdentity(key crypto.PrivKey) (identity, error) {
	if key.Type() != crypto.Ed25519 {
		return identity{}, fmt.Errorf("the node's key is of type %s; records are signed with Ed25519: give an Ed25519 key", key.Type())
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("peer id of the node's key: %w", err)
	}
	raw, err := key.Raw()
	if err != nil {
		return identity{}, fmt.Errorf("the bytes of the node's key: %w", err)
	}
	if len(raw) != ed25519.PrivateKeySize {
		return identity{}, fmt.Errorf("the node's key has %d bytes; give an Ed25519 key, of %d", len(raw), ed25519.PrivateKeySize)
	}
	if !bytes.Equal(raw, ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])) {
		return identity{}, errors.New("the public half of the node's key does not fit the private one")
	}
	return identity{key, id, signature.NewSigner(raw)}, nil
}

// sign makes the signature of a record or of a statement.
func (i *identity) sign(message []byte) ([]byte, error) { return i.signer.Sign(message), nil }

func (i *identity) signAll(messages [][]byte) [][]byte { return i.signer.SignAll(messages) }

// otherIdentity is what to do where the key in the folder is not the node's.
const otherIdentity = "put back the copy from a backup, or give the node a new identity (syncd init --new-identity)"

// loadIdentity reads the key in a folder. It has no envelope, for its public half and its
// form show damage.
func loadIdentity(dir string) (crypto.PrivKey, error) {
	path := filepath.Join(dir, identityFile)
	b, err := durable.ReadPrivate(path)
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err == nil {
		_, err = newIdentity(key)
	}
	if err != nil {
		return nil, durable.Damaged(path, "is damaged (%v): %s", err, otherIdentity)
	}
	return key, nil
}

// ownKey reads the key in the node's folder, and makes one where no node has been yet.
func (n *Node) ownKey(ctx context.Context) (crypto.PrivKey, error) {
	key, err := loadIdentity(n.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	ids, dropped, failed := namespaceDirs(filepath.Join(n.dir, namespacesDir))
	sets, err := n.setsInStore(ctx)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	if len(ids)+len(dropped)+len(sets) > 0 {
		return nil, durable.Damaged(filepath.Join(n.dir, identityFile), "is missing, and the data directory has namespaces: %s", otherIdentity)
	}
	return n.freshIdentity()
}

// freshIdentity makes a key, and saves it as the node's.
func (n *Node) freshIdentity() (crypto.PrivKey, error) {
	key, err := freshIdentity()
	if err == nil {
		err = saveIdentity(n.dir, identityFile, key)
	}
	return key, err
}

func saveIdentity(dir, name string, key crypto.PrivKey) error {
	b, err := crypto.MarshalPrivateKey(key)
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, name), b)
	}
	return err
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

func freshIdentity() (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	return key, err
}

// checkID refuses the ids of keys that are not Ed25519. Only ids of such keys hold
// them, and records are verified by the writer's id.
func checkID(id ID) error {
	_, err := node.ID(id).PublicKey()
	return err
}
