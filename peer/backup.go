package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/locator"
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
func (n *Node) Backup(ctx context.Context, dir string, o offline.BackupOptions) (*offline.Backup, error) {
	if !n.gate.enter() {
		return nil, fmt.Errorf("back up into %s: %w", dir, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	m, err := n.backup(ctx, dir, o)
	if err = n.met(err); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, fmt.Errorf("back up into %s: %w", dir, err)
	}
	return offline.BackupOf(m), nil
}

func (n *Node) backup(ctx context.Context, dir string, o offline.BackupOptions) (_ *backup.Manifest, err error) {
	store, ok := n.store.(dbadapter.Backuper)
	if !ok || n.dir == "" {
		return nil, fmt.Errorf("%w: the node has no folder, or a store that cannot be copied", ErrInvalid)
	}
	if inside, err := within(dir, n.dir); err != nil {
		return nil, err
	} else if inside {
		return nil, fmt.Errorf("%w: the folder is in the node's own, %s: give one on another disk", ErrInvalid, n.dir)
	}
	if out := n.shelved(); len(out) > 0 {
		return nil, fmt.Errorf("%w; a backup would lack it: repair it first", out[0].notServed())
	}
	n.backing.Lock()
	defer n.backing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	into, err := backup.Create(dir, n.self.id.String())
	if errors.Is(err, backup.ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err != nil {
		return nil, err
	}
	base, mark, err := lastOf(into, o.Full)
	if err != nil {
		return nil, err
	}
	draft, err := into.Begin()
	if err != nil {
		return nil, err
	}
	m := &backup.Manifest{Program: o.Program}
	whole, err := n.fill(ctx, draft, m, store, mark, o.Progress)
	if err == nil {
		if !whole {
			m.Base = base
		}
		err = draft.Commit(m)
	}
	if err != nil {
		return nil, errors.Join(err, draft.Discard())
	}
	if err := store.Settle(context.WithoutCancel(ctx), m.Mark); err != nil {
		n.log.Warn("the backup is there, but the next one will be whole", slog.Any("err", err))
	}
	return m, nil
}

// lastOf is the generation to go on from, and its mark; 0 and nil for a whole one.
func lastOf(in *backup.Folder, full bool) (int, []byte, error) {
	if full || in.Latest == 0 {
		return 0, nil, nil
	}
	line, err := in.Line(in.Latest)
	if err != nil {
		return 0, nil, fmt.Errorf("%w; back up into another folder, or make a full backup here", err)
	}
	return in.Latest, line[len(line)-1].Mark, nil
}

// fill writes the files of a generation, and what the manifest says of them. whole is
// whether the copy of the store needs no earlier one.
func (n *Node) fill(ctx context.Context, draft *backup.Draft, m *backup.Manifest, store dbadapter.Backuper, since []byte, progress func(int64)) (whole bool, err error) {
	key, err := crypto.MarshalPrivateKey(n.self.key)
	if err != nil {
		return false, err
	}
	files := map[string][]byte{folder.KeyFile: key}
	of := map[dbadapter.NamespaceID]*shard{} // by the ids of their sets
	var checkpoint dbadapter.Checkpoint
	// At this moment, no namespace comes or goes, and no state changes.
	n.changing.Lock()
	err = n.core.Still(func() (err error) {
		for _, ns := range n.Namespaces() {
			for _, sh := range ns.shards() {
				of[sh.set.Keys.ID] = sh
			}
			if err := readFolder(folder.Path(n.dir, ns.id), n.dir, files); err != nil {
				return err
			}
		}
		m.Taken = n.now().UTC()
		checkpoint, err = store.Checkpoint(ctx)
		return err
	})
	n.changing.Unlock()
	if err != nil {
		return false, err
	}
	defer checkpoint.Close()
	book, err := os.ReadFile(filepath.Join(n.dir, folder.AddressBookFile))
	switch {
	case err == nil:
		files[folder.AddressBookFile] = book
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	for name, b := range files {
		if err := draft.Write(backup.NodeDir+"/"+name, b); err != nil {
			return false, err
		}
	}
	w, err := draft.Create(backup.StoreFile)
	if err != nil {
		return false, err
	}
	copied, err := checkpoint.Copy(ctx, &meter{w: w, told: progress}, since)
	if err = errors.Join(err, w.Close()); err != nil {
		return false, err
	}
	m.Mark = copied.Mark
	for _, c := range copied.Namespaces {
		one := backup.Namespace{ID: hex.EncodeToString(c.ID[:]), Records: c.Records, Seq: c.Seq, Since: c.Since}
		if sh := of[c.ID]; sh != nil {
			ns := sh.ns
			one.Name = ns.Name()
			if ns.id != c.ID {
				one.Of = hex.EncodeToString(ns.id[:])
			}
		}
		m.Namespaces = append(m.Namespaces, one)
	}
	return copied.Whole, nil
}

// readFolder reads the files of a folder that a backup is to have, by their names within top.
func readFolder(dir, top string, into map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() || strings.HasSuffix(path, ".tmp") {
			continue // left by a crash, and replaced with the next write
		}
		if locator.IsCopy(e.Name()) {
			continue // 4.5 bytes a key, and a node that lacks it fetches it from others
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if into[filepath.ToSlash(name)], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}

// meter counts what is written.
type meter struct {
	w    interface{ Write([]byte) (int, error) }
	sum  int64
	told func(int64)
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.sum += int64(n)
	if m.told != nil {
		m.told(m.sum)
	}
	return n, err
}

// within tells whether a folder, which may not be there yet, is another one or
// lies in it.
func within(dir, other string) (bool, error) {
	resolve := func(path string) (string, error) {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		rest := ""
		for at := path; ; at = filepath.Dir(at) {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				return filepath.Join(real, rest), nil
			} else if filepath.Dir(at) == at {
				return path, nil
			}
			rest = filepath.Join(filepath.Base(at), rest)
		}
	}
	dir, err := resolve(dir)
	if err != nil {
		return false, err
	}
	if other, err = resolve(other); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(other, dir)
	return err == nil && filepath.IsLocal(rel), nil
}
