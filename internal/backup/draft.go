package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/internal/durable"
)

// Draft is a generation that is being made.
type Draft struct {
	folder     *Folder
	generation int
	path       string
	dirs       map[string]bool // to be synced
	files      []File
}

// Begin begins the next generation. It must be committed or discarded; two must
// not be made at a time.
func (f *Folder) Begin() (*Draft, error) {
	if err := f.clear(); err != nil {
		return nil, err
	}
	d := &Draft{folder: f, generation: f.Latest + 1, dirs: map[string]bool{}}
	d.path = f.generation(d.generation) + partialSuffix
	d.dirs[d.path] = true
	return d, os.Mkdir(d.path, durable.DirMode)
}

// Write makes a file of which the bytes are at hand.
func (d *Draft) Write(name string, b []byte) error {
	w, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return errors.Join(err, w.Close())
}

// Create makes a file; name has slashes. Close makes it durable.
func (d *Draft) Create(name string) (*DraftFile, error) {
	path := filepath.Join(d.path, filepath.FromSlash(name))
	for dir := filepath.Dir(path); dir != d.path; dir = filepath.Dir(dir) {
		d.dirs[dir] = true
	}
	if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FileMode)
	if err != nil {
		return nil, err
	}
	return &DraftFile{draft: d, name: name, file: file, hash: sha256.New()}, nil
}

// DraftFile is a file of a draft.
type DraftFile struct {
	draft *Draft
	name  string
	file  *os.File
	hash  hash.Hash
	size  int64
	dirty int // bytes since the last sync
}

// syncEach is how much is written between two syncs of a file. In one piece at the end,
// the disk would hold up the syncs of the store, and so its writers.
const syncEach = 8 << 20

// Write adds to the file.
func (f *DraftFile) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	f.hash.Write(b[:n]) // never fails
	f.size += int64(n)
	if f.dirty += n; err == nil && f.dirty >= syncEach {
		f.dirty = 0
		err = f.file.Sync()
	}
	return n, err
}

// Close makes the file durable, and a part of the draft.
func (f *DraftFile) Close() error {
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return err
	}
	f.draft.files = append(f.draft.files, File{f.name, f.size, hex.EncodeToString(f.hash.Sum(nil))})
	return nil
}

// Commit makes the draft the latest generation. The manifest says all but what
// the draft knows: the generation, the files and the base's hash.
func (d *Draft) Commit(m *Manifest) error {
	f := d.folder
	m.Format, m.Node, m.Generation, m.Files = Format, f.Node, d.generation, d.files
	if m.Base > 0 {
		_, b, err := f.manifest(m.Base)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		m.BaseSHA256 = hex.EncodeToString(sum[:])
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	for dir := range d.dirs {
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(filepath.Join(d.path, manifestFile), b); err != nil {
		return err
	}
	if err := os.Rename(d.path, f.generation(d.generation)); err != nil {
		return err
	}
	if err := durable.SyncDir(f.Path); err != nil {
		return err
	}
	f.Latest, f.Generations = d.generation, append(f.Generations, d.generation)
	if err := f.writeIndex(); err != nil {
		return fmt.Errorf("generation %d is there, and %s does not know it yet: %w", d.generation, indexFile, err)
	}
	return nil
}

// Discard removes what there is of a draft that was not committed.
func (d *Draft) Discard() error { return os.RemoveAll(d.path) }
