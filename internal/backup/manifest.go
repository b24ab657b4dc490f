package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Format is the number of the layout that this program reads and writes.
const Format = 1

// Manifest says what a generation holds.
type Manifest struct {
	Format  int    `json:"format"`
	Program string `json:"program"` // that made it, and its version
	Node    string `json:"node"`    // the peer id
	// Generation counts from 1. Base is the generation that this one follows: it
	// holds what has changed since. 0: it is whole.
	Generation int    `json:"generation"`
	Base       int    `json:"base"`
	BaseSHA256 string `json:"base_sha256,omitempty"` // of the base's manifest
	// Taken is the moment that the generation shows.
	Taken      time.Time   `json:"taken"`
	Namespaces []Namespace `json:"namespaces"`
	Files      []File      `json:"files"`
	// Mark is what the store needs to make the next one.
	Mark []byte `json:"mark"`
	// SHA256 is of this file, as it is with this field empty.
	SHA256 string `json:"sha256"`
}

// Namespace is what a generation holds of a namespace.
type Namespace struct {
	Name    string `json:"name,omitempty"` // empty: the store holds it for another one's sake
	ID      string `json:"id"`
	Of      string `json:"of,omitempty"` // the id of the namespace whose shard it is; empty: it is no shard
	Records uint64 `json:"records"`      // tombstones included
	Seq     uint64 `json:"seq"`          // of the last change
	Since   uint64 `json:"since"`        // the copy holds the changes after this one; 0: all records
}

// File is a file of a generation.
type File struct {
	Name   string `json:"name"` // with slashes, within the generation's folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// index is the file backup.json.
type index struct {
	Format int    `json:"format"`
	Node   string `json:"node"`
	Latest int    `json:"latest"` // the last generation; 0 before the first
	SHA256 string `json:"sha256"`
}

const (
	manifestFile = "manifest.json"
	indexFile    = "backup.json"
	// maxJSON bounds what is read of a manifest or index: some 10^5 files.
	maxJSON = 64 << 20
)

type sealed interface{ sum() *string }

func (m *Manifest) sum() *string { return &m.SHA256 }
func (i *index) sum() *string    { return &i.SHA256 }

// encode is the one form of a file, with its hash.
func encode(v sealed) ([]byte, error) {
	*v.sum() = ""
	bare, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(bare)
	*v.sum() = hex.EncodeToString(hash[:])
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}

// readSealed reads what encode wrote, and returns its bytes.
func readSealed(path string, into sealed) ([]byte, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	// Any format of these files begins with this much: a flipped bit makes no other
	// format of one.
	var head struct {
		Format int    `json:"format"`
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, damaged(path, "is not what was written: %v", err)
	}
	bare := bytes.Replace(bytes.TrimSuffix(b, []byte("\n")), []byte(strconv.Quote(head.SHA256)), []byte(`""`), 1)
	if hash := sha256.Sum256(bare); hex.EncodeToString(hash[:]) != head.SHA256 {
		return nil, damaged(path, "is not what was written: its checksum does not match")
	}
	if head.Format > Format {
		return nil, fmt.Errorf("%w: %s has format %d; this program reads %d: use the program that wrote it", dbadapter.ErrFormat, path, head.Format, Format)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, damaged(path, "is not what was written: %v", err)
	}
	if again, err := encode(into); err != nil || !bytes.Equal(again, b) {
		return nil, damaged(path, "is not what was written: its form is not the one form")
	}
	return b, nil
}

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged(path, "is missing")
	case err != nil:
		return nil, err
	case info.Size() > maxJSON:
		return nil, damaged(path, "has %d bytes", info.Size())
	}
	return os.ReadFile(path)
}

// Manifest reads the manifest of a generation.
func (f *Folder) Manifest(generation int) (*Manifest, error) {
	m, _, err := f.manifest(generation)
	return m, err
}

func (f *Folder) manifest(generation int) (*Manifest, []byte, error) {
	path := filepath.Join(f.generation(generation), manifestFile)
	m := new(Manifest)
	b, err := readSealed(path, m)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case m.Generation != generation || m.Node != f.Node || m.Base < 0 || m.Base >= generation:
		return nil, nil, damaged(path, "belongs elsewhere: it is of generation %d of node %s", m.Generation, m.Node)
	case !slices.ContainsFunc(m.Files, func(one File) bool { return one.Name == StoreFile }):
		return nil, nil, damaged(path, "names no copy of the store")
	}
	for _, one := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(one.Name)) || one.Name == manifestFile || one.Size < 0 {
			return nil, nil, damaged(path, "names the file %q", one.Name)
		}
	}
	return m, b, nil
}

// Line is a generation and those that it needs before it, the whole one first.
func (f *Folder) Line(generation int) ([]*Manifest, error) {
	var line []*Manifest
	for want := ""; ; {
		m, b, err := f.manifest(generation)
		if err != nil {
			return nil, err
		}
		if hash := sha256.Sum256(b); want != "" && hex.EncodeToString(hash[:]) != want {
			return nil, damaged(filepath.Join(f.generation(generation), manifestFile), "is not the one that generation %d follows", line[len(line)-1].Generation)
		}
		line = append(line, m)
		if m.Base == 0 {
			slices.Reverse(line)
			return line, nil
		}
		generation, want = m.Base, m.BaseSHA256
	}
}
