package peer

import (
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
	return identity{key, id, signature.NewSigner(raw)}, nil
}

// sign makes the signature of a record or of a statement.
func (i *identity) sign(message []byte) ([]byte, error) { return i.signer.Sign(message), nil }

func (i *identity) signAll(messages [][]byte) [][]byte { return i.signer.SignAll(messages) }

// loadIdentity reads the key in a folder, and makes one in a folder without.
func loadIdentity(dir string) (crypto.PrivKey, error) {
	path := filepath.Join(dir, identityFile)
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's key: %w", err)
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("%w: the node's key in %s: %v", ErrCorrupt, path, err)
	}
	return key, nil
}

func createIdentity(path string) (crypto.PrivKey, error) {
	key, err := freshIdentity()
	if err != nil {
		return nil, err
	}
	b, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, durable.WriteFile(path, b)
}

func freshIdentity() (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	return key, err
}

// checkID refuses the ids of keys that are not Ed25519: only ids of such keys hold
// them, and records are verified by the writer's id.
func checkID(id ID) error {
	_, err := node.ID(id).PublicKey()
	return err
}
