package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/offline"
)

// Backup copies the node into a folder, as of one moment. A copy has the records of all
// namespaces with their members, secrets and states, the address book and the node's
// key. Reads, writes and syncs go on meanwhile. The first backup in a folder is whole.
// Each further one holds what has changed since the one before. The folder must be
// empty, absent, or hold this node's backups. Only the owner can read what is written,
// for the key and secrets are in it. An interrupted backup leaves the generations
// before it as they are.
//
// It takes a Dir, and a Store that is a dbadapter.Backuper, as the default one is.
func (n *Node) Backup(ctx context.Context, dir string, o offline.BackupOptions) (done *offline.Backup, err error) {
	err = n.within(ctx, "back up into "+dir, func(ctx context.Context) error {
		m, err := n.backup(ctx, dir, o)
		if err == nil {
			done = offline.BackupOf(m)
		}
		return n.met(err)
	})
	return done, err
}

func (n *Node) backup(ctx context.Context, dir string, o offline.BackupOptions) (*backup.Manifest, error) {
	store, ok := n.store.(dbadapter.Backuper)
	if !ok || n.dir == "" {
		return nil, fmt.Errorf("%w: the node has no folder, or a store that cannot be copied", ErrInvalid)
	}
	if out := n.shelved(); len(out) > 0 {
		return nil, fmt.Errorf("%w; a backup would lack it: repair it first", out[0].notServed())
	}
	n.backing.Lock()
	defer n.backing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := backup.Take(ctx, backup.Node{ID: n.self.id.String(), Dir: n.dir, Store: store, Now: n.now, Log: n.log, Still: n.still}, dir, backup.Options(o))
	if errors.Is(err, backup.ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, err
}

// still runs fn at a moment at which no namespace comes or goes, and no state changes. It
// reads the files that a backup is to have, and says of which namespaces the sets are.
func (n *Node) still(fn func() error) (files map[string][]byte, sets map[dbadapter.NamespaceID]backup.Set, err error) {
	key, err := crypto.MarshalPrivateKey(n.self.key)
	if err != nil {
		return nil, nil, err
	}
	sets = map[dbadapter.NamespaceID]backup.Set{}
	n.changing.Lock()
	defer n.changing.Unlock()
	err = n.core.Still(func() (err error) {
		var ids []dbadapter.NamespaceID
		for _, ns := range n.Namespaces() {
			ids = append(ids, ns.id)
			for _, sh := range ns.shards() {
				sets[sh.set.Keys.ID] = backup.Set{Namespace: ns.id, Name: ns.Name()}
			}
		}
		if files, err = folder.Files(n.dir, ids); err != nil {
			return err
		}
		files[folder.KeyFile] = key
		return fn()
	})
	return files, sets, err
}
