package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Node is a running node, of which Take makes a generation.
type Node struct {
	ID    string // the peer id
	Dir   string // its folder
	Store dbadapter.Backuper
	Now   func() time.Time
	Log   *slog.Logger
	// Still runs a function at a moment at which no namespace comes or goes, and no state
	// changes. It reads the files of that moment, by their names in the node's folder, and
	// says to which namespaces the sets in the store belong.
	Still func(func() error) (files map[string][]byte, sets map[dbadapter.NamespaceID]Set, err error)
}

// Set says to which namespace a set of records in the store belongs.
type Set struct {
	Namespace dbadapter.NamespaceID
	Name      string // of the namespace, on this node
}

// Options say how Take makes a generation.
type Options struct {
	Full     bool   // it needs no other one before it
	Program  string // noted in the manifest
	Progress func(bytes int64)
}

// Take makes the next generation in a folder. Two must not be made at a time.
func Take(ctx context.Context, n Node, dir string, o Options) (_ *Manifest, err error) {
	if inside, err := within(dir, n.Dir); err != nil {
		return nil, err
	} else if inside {
		return nil, fmt.Errorf("%w: the folder is in the node's own, %s: give one on another disk", ErrInvalid, n.Dir)
	}
	into, err := Create(dir, n.ID)
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
	m := &Manifest{Program: o.Program}
	whole, err := n.fill(ctx, draft, m, mark, o.Progress)
	if err == nil {
		if !whole {
			m.Base = base
		}
		err = draft.Commit(m)
	}
	if err != nil {
		return nil, errors.Join(err, draft.Discard())
	}
	if err := n.Store.Settle(context.WithoutCancel(ctx), m.Mark); err != nil {
		n.Log.Warn("the backup is there, but the next one will be whole", slog.Any("err", err))
	}
	return m, nil
}

// lastOf is the generation to go on from, and its mark; 0 and nil for a whole one.
func lastOf(in *Folder, full bool) (int, []byte, error) {
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
func (n *Node) fill(ctx context.Context, draft *Draft, m *Manifest, since []byte, progress func(int64)) (whole bool, err error) {
	var checkpoint dbadapter.Checkpoint
	files, sets, err := n.Still(func() (err error) {
		m.Taken = n.Now().UTC()
		checkpoint, err = n.Store.Checkpoint(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	defer checkpoint.Close()
	for name, b := range files {
		if err := draft.Write(NodeDir+"/"+name, b); err != nil {
			return false, err
		}
	}
	w, err := draft.Create(StoreFile)
	if err != nil {
		return false, err
	}
	copied, err := checkpoint.Copy(ctx, &meter{w: w, progress: progress}, since)
	if err = errors.Join(err, w.Close()); err != nil {
		return false, err
	}
	m.Mark = copied.Mark
	for _, c := range copied.Namespaces {
		one := Namespace{ID: hex.EncodeToString(c.ID[:]), Records: c.Records, Seq: c.Seq, Since: c.Since}
		if set, ok := sets[c.ID]; ok {
			one.Name = set.Name
			if set.Namespace != c.ID {
				one.Of = hex.EncodeToString(set.Namespace[:])
			}
		}
		m.Namespaces = append(m.Namespaces, one)
	}
	return copied.Whole, nil
}

// meter counts what is written.
type meter struct {
	w        interface{ Write([]byte) (int, error) }
	sum      int64
	progress func(int64)
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.sum += int64(n)
	if m.progress != nil {
		m.progress(m.sum)
	}
	return n, err
}

// within reports whether a folder, which may not be there yet, is another one or
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
