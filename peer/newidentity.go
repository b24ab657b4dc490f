package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/durable"
)

// Renewed says what NewIdentity did.
type Renewed struct {
	// Old is the id that the node had; empty where its key was missing or damaged.
	Old, New ID
	// OldKey is the file in which the old key is kept; empty where there was none.
	OldKey string
}

// NewIdentity gives a fresh key to the node that a Config's Dir and Store say, which
// must not be open. It is for a copy that is to live next to its original, or for a node
// whose key is lost. Two nodes with one identity would make versions that others take
// for one node's. The old key is kept as identity-<peer id>.key. The namespaces and
// their records stay, but their other members know nothing of the new id. The node is
// not a member until an admin has invited it and it has joined, and it may not write
// until then.
func NewIdentity(ctx context.Context, cfg Config) (r Renewed, err error) {
	// An open node keeps others off the folder.
	n, err := Open(ctx, Config{Dir: cfg.Dir, Store: cfg.Store, ListenAddrs: []string{}, renew: &r})
	if err == nil {
		r.New = n.ID()
		err = n.Close(context.WithoutCancel(ctx))
	}
	if err != nil {
		return r, fmt.Errorf("make a new identity in %s: %w", cfg.Dir, err)
	}
	return r, nil
}

// renewIdentity keeps the old key before a fresh one takes its place. The opening then
// makes the files of the folder those of the new id. Where that is cut short, another call
// does it.
func (n *Node) renewIdentity(r *Renewed) (crypto.PrivKey, error) {
	old, err := loadIdentity(n.dir)
	switch {
	case err == nil:
		r.Old, err = peer.IDFromPrivateKey(old)
		if name := "identity-" + r.Old.String() + ".key"; err == nil {
			r.OldKey, err = filepath.Join(n.dir, name), saveIdentity(n.dir, name, old)
		}
	case errors.Is(err, ErrFileDamaged):
		r.OldKey, err = durable.SetAside(filepath.Join(n.dir, identityFile))
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	n.renewed = true
	return n.freshIdentity()
}
