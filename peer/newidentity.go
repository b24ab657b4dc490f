package peer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/durable"
)

// NewIdentity gives the node that a Config's Dir and Store say, which must not be
// open, a fresh key, for a copy that is to live beside its original: two nodes with one identity would
// make versions that others take for one node's. The old key is kept as
// identity-<peer id>.key. The namespaces and their records stay, and nothing is
// known of the new id to their other members: the node is not a member until an
// admin has invited it and it has joined, and it may not write until then.
func NewIdentity(ctx context.Context, cfg Config) (old, fresh ID, err error) {
	fail := func(err error) (ID, ID, error) {
		return "", "", fmt.Errorf("make a new identity in %s: %w", cfg.Dir, err)
	}
	// An open node keeps others off the folder.
	n, err := Open(ctx, Config{Dir: cfg.Dir, Store: cfg.Store, ListenAddrs: []string{}})
	if err != nil {
		return fail(err)
	}
	old = n.ID()
	fresh, err = n.replaceIdentity()
	if err = errors.Join(err, n.Close(context.WithoutCancel(ctx))); err != nil {
		return fail(err)
	}
	return old, fresh, nil
}

// OldIdentityFile is where NewIdentity keeps the key that it replaced.
func OldIdentityFile(dir string, old ID) string {
	return filepath.Join(dir, "identity-"+old.String()+".key")
}

// replaceIdentity writes the old key aside before a fresh one takes its place.
func (n *Node) replaceIdentity() (ID, error) {
	b, err := crypto.MarshalPrivateKey(n.self.key)
	if err != nil {
		return "", err
	}
	if err := durable.WriteFile(OldIdentityFile(n.dir, n.self.id), b); err != nil {
		return "", err
	}
	key, err := createIdentity(filepath.Join(n.dir, identityFile))
	if err != nil {
		return "", err
	}
	return peer.IDFromPrivateKey(key)
}
