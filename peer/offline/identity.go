package offline

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
)

// Renewed says what NewIdentity did.
type Renewed struct {
	New peer.ID `json:"id"`
	// Old is the id that the node had; empty where its key was missing or damaged.
	Old peer.ID `json:"old_id"`
	// OldKey is the file in which the old key is kept; empty where there was none.
	OldKey string `json:"old_key"`
}

// NewIdentity gives a fresh key to the node of a folder. It is for a copy that is to live next to its
// original, or for a node whose key is lost. Two nodes with one identity would make versions that
// others take for one node's. A nil store is the one in the folder; the caller has opened another one.
//
// The old key is kept as identity-<peer id>.key. The next start makes the files of the folder those of
// the new id. The namespaces and their records stay, but their other members know nothing of the new
// id. The node is not a member until an admin has invited it and it has joined, and it may not write
// until then.
func NewIdentity(dir string, store dbadapter.Store) (r Renewed, err error) {
	defer named(&err, "make a new identity in %s", dir)
	if err := folder.Restoring(dir); err != nil {
		return r, err
	}
	if store == nil { // its lock keeps nodes off the folder
		if store, err = folder.OpenStore(dir, "", ondisk.Options{}); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	key, old, kept, err := folder.RenewKey(dir)
	r.Old, r.OldKey = old, kept
	if err == nil {
		r.New, err = peer.IDFromPrivateKey(key)
	}
	return r, err
}
