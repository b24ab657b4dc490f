package cuckoo

import "github.com/syncd-io/syncd/bfield/internal/infile"

// Files hold the saved forms. Save writes and syncs a temporary file next to the named
// one, which then takes its name. After a crash there is the old file or the new one.
// The Open functions read all of a file into memory, since a table changes. Later
// changes of the file change no answer. They fail with ErrFormat if it holds anything
// else.

// Save writes the Map to a file. After a crash there is the old file or the new one.
func (m *Map[K, V]) Save(path string) error { return infile.Marshal(path, m.MarshalBinary) }

// OpenMap returns the Map saved in a file, and reads all of it into memory.
func OpenMap[K, V ~uint64](path string) (*Map[K, V], error) {
	m := new(Map[K, V])
	if err := infile.Parse(path, mapMagic, m.UnmarshalBinary); err != nil {
		return nil, err
	}
	return m, nil
}

// Save writes the Table to a file. After a crash there is the old file or the new one.
func (t *Table) Save(path string) error { return infile.Marshal(path, t.MarshalBinary) }

// Open returns the Table saved in a file, and reads all of it into memory.
func Open(path string) (*Table, error) {
	t := new(Table)
	if err := infile.Parse(path, tableMagic, t.UnmarshalBinary); err != nil {
		return nil, err
	}
	return t, nil
}
