package cuckoo

import (
	"errors"
	"io"

	"github.com/syncd-io/syncd/bfield/internal/infile"
)

// Files hold the saved forms. Save writes and syncs a temporary file next to the named
// one, which then takes its name. After a crash there is the old file or the new one.
// The Open functions read all of a file into memory, since a table changes. Later
// changes of the file change no answer. They fail with ErrFormat if it holds anything
// else.

// Save writes the Map to a file. After a crash there is the old file or the new one.
func (m *Map[K, V]) Save(path string) error { return save(path, m) }

// OpenMap returns the Map saved in a file, and reads all of it into memory.
func OpenMap[K, V ~uint64](path string) (*Map[K, V], error) { return opened(path, ReadMap[K, V]) }

// Save writes the Table to a file. After a crash there is the old file or the new one.
func (t *Table) Save(path string) error { return save(path, t) }

// Open returns the Table saved in a file, and reads all of it into memory.
func Open(path string) (*Table, error) { return opened(path, Read) }

func save(path string, from io.WriterTo) error {
	return infile.Write(path, func(w io.Writer) error {
		_, err := from.WriteTo(w)
		return err
	})
}

func opened[T any](path string, read func(io.Reader) (*T, error)) (t *T, err error) {
	err = infile.Read(path, func(r io.Reader) (err error) {
		if t, err = read(r); err != nil {
			return err
		}
		if _, err = io.ReadFull(r, make([]byte, 1)); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errFormat("other bytes follow it")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
