package folder

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/durable"
)

// OtherKey is what to do where the key in the folder is not the node's.
const OtherKey = "put back the copy from a backup, or give the node a new identity (syncd init --new-identity)"

// LoadKey reads the node's key. Its public half and its form show damage.
func LoadKey(dir string) (crypto.PrivKey, error) {
	path := filepath.Join(dir, KeyFile)
	b, err := durable.ReadPrivate(path)
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err == nil {
		_, _, err = CheckKey(key)
	}
	if err != nil {
		return nil, durable.Damaged(path, "is damaged (%v): %s", err, OtherKey)
	}
	return key, nil
}

// FreshKey makes a key, and saves it as the node's. Without a folder it is kept nowhere.
func FreshKey(dir string) (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err == nil && dir != "" {
		err = saveKey(dir, KeyFile, key)
	}
	return key, err
}

func saveKey(dir, name string, key crypto.PrivKey) error {
	b, err := crypto.MarshalPrivateKey(key)
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, name), b)
	}
	return err
}

// RenewKey gives the node a fresh key, and returns the file in which the old one is kept. The old
// id is empty where the key is damaged, and the file, too, where it is missing. The next opening
// makes the files of the folder those of the new id.
func RenewKey(dir string) (key crypto.PrivKey, old peer.ID, kept string, err error) {
	was, err := LoadKey(dir)
	switch {
	case err == nil:
		old, err = peer.IDFromPrivateKey(was)
		if name := "identity-" + old.String() + ".key"; err == nil {
			kept, err = filepath.Join(dir, name), saveKey(dir, name, was)
		}
	case errors.Is(err, durable.ErrDamaged):
		kept, err = durable.SetAside(filepath.Join(dir, KeyFile))
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, renewedFile), nil)
	}
	if err == nil {
		key, err = FreshKey(dir)
	}
	return key, old, kept, err
}

// CheckKey returns a key's id and its bytes. It refuses a key that is not Ed25519: records are
// signed with it, and verified by the id.
func CheckKey(key crypto.PrivKey) (peer.ID, ed25519.PrivateKey, error) {
	if key.Type() != crypto.Ed25519 {
		return "", nil, fmt.Errorf("the node's key is of type %s; records are signed with Ed25519: give an Ed25519 key", key.Type())
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return "", nil, fmt.Errorf("peer id of the node's key: %w", err)
	}
	raw, err := key.Raw()
	if err != nil {
		return "", nil, fmt.Errorf("the bytes of the node's key: %w", err)
	}
	if len(raw) != ed25519.PrivateKeySize {
		return "", nil, fmt.Errorf("the node's key has %d bytes; give an Ed25519 key, of %d", len(raw), ed25519.PrivateKeySize)
	}
	if !bytes.Equal(raw, ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])) {
		return "", nil, errors.New("the public half of the node's key does not fit the private one")
	}
	return id, raw, nil
}
