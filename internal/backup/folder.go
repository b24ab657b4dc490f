package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/internal/durable"
)

const (
	// StoreFile is the copy of the store, in a generation.
	StoreFile = "store"
	// NodeDir holds the node's other files, in a generation.
	NodeDir = "node"

	partialSuffix = ".partial"
)

// Folder is a folder of backups of one node.
type Folder struct {
	Path string
	Node string // the peer id
	// Latest is the last generation, 0 before the first.
	Latest int
	// Generations are those that are there, ascending. Older ones may have been
	// deleted by hand.
	Generations []int
}

// Open opens a folder of backups, or returns ErrNoBackup.
func Open(path string) (*Folder, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no folder %s", ErrNoBackup, path)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: path}
	known := false
	for _, e := range entries {
		g, ok := parseGeneration(e.Name())
		if ok {
			f.Generations = append(f.Generations, g)
		}
		known = known || ok || e.Name() == indexFile
	}
	if !known {
		return nil, fmt.Errorf("%w: %s holds other files or nothing", ErrNoBackup, path)
	}
	slices.Sort(f.Generations)
	var i index
	if _, err := readSealed(filepath.Join(path, indexFile), &i); err != nil {
		return nil, err
	}
	f.Node, f.Latest = i.Node, i.Latest
	// A generation has its name before the index knows it.
	if n := len(f.Generations); n > 0 {
		f.Latest = max(f.Latest, f.Generations[n-1])
	}
	return f, nil
}

// Create opens the folder of a node's backups, and makes it if there is no
// folder, or an empty one. ErrInvalid: it holds something else, or another
// node's backups.
func Create(path, node string) (*Folder, error) {
	if err := os.MkdirAll(path, durable.DirMode); err != nil {
		return nil, err
	}
	f, err := Open(path)
	if errors.Is(err, ErrNoBackup) {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != indexFile+durable.Suffix && e.Name() != "lost+found" }) {
			return nil, fmt.Errorf("%w: %s holds other files: give a folder that is empty, or not there yet", ErrInvalid, path)
		}
		f = &Folder{Path: path, Node: node}
		return f, errors.Join(f.writeIndex(), durable.SyncDir(filepath.Dir(path)))
	}
	if err != nil {
		return nil, err
	}
	if f.Node != node {
		return nil, fmt.Errorf("%w: %s holds backups of node %s, this is %s: give another folder", ErrInvalid, path, f.Node, node)
	}
	return f, nil
}

func (f *Folder) writeIndex() error {
	b, err := encode(&index{Format: Format, Node: f.Node, Latest: f.Latest})
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(f.Path, indexFile), b)
}

func generationName(g int) string { return fmt.Sprintf("%06d", g) }

func parseGeneration(name string) (int, bool) {
	g, err := strconv.Atoi(name)
	return g, err == nil && g > 0 && generationName(g) == name
}

func (f *Folder) generation(g int) string { return filepath.Join(f.Path, generationName(g)) }

// File is the path of a file of a generation.
func (f *Folder) File(generation int, name string) string {
	return filepath.Join(f.generation(generation), filepath.FromSlash(name))
}

// clear removes what generations that were cut short have left.
func (f *Folder) clear() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, partial := strings.CutSuffix(e.Name(), partialSuffix)
		if _, ok := parseGeneration(name); partial && ok {
			if err := os.RemoveAll(filepath.Join(f.Path, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
