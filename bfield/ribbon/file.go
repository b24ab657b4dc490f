package ribbon

import "github.com/syncd-io/syncd/bfield/internal/infile"

// Files hold the saved forms. Save writes and syncs a temporary file next to the named
// one, which then takes its name. After a crash there is the old file or the new one. The
// Open functions read all of a file into memory, so that later changes of it change no
// answer. They fail with ErrFormat if it holds anything else. MapOf, RetrievalOf and
// FilterOf are for bytes that are mapped into memory.

// Save writes the Map to a file. After a crash there is the old file or the new one.
func (m *Map) Save(path string) error { return infile.Marshal(path, m.MarshalBinary) }

// OpenMap returns the Map saved in a file, and reads all of it into memory.
func OpenMap(path string) (*Map, error) { return opened(path, magic, MapOf) }

// Save writes the Retrieval to a file. After a crash there is the old file or the new one.
func (r *Retrieval) Save(path string) error { return infile.Marshal(path, r.MarshalBinary) }

// OpenRetrieval returns the Retrieval saved in a file, and reads all of it into memory.
func OpenRetrieval(path string) (*Retrieval, error) { return opened(path, magic, RetrievalOf) }

// Save writes the Filter to a file. After a crash there is the old file or the new one.
func (f *Filter) Save(path string) error { return infile.Marshal(path, f.MarshalBinary) }

// OpenFilter returns the Filter saved in a file, and reads all of it into memory.
func OpenFilter(path string) (*Filter, error) { return opened(path, magic, FilterOf) }

// Save writes the Coded to a file. After a crash there is the old file or the new one.
func (c *Coded) Save(path string) error { return infile.Marshal(path, c.MarshalBinary) }

// OpenCoded returns the Coded saved in a file, and reads all of it into memory.
func OpenCoded(path string) (*Coded, error) {
	return opened(path, codedMagic, func(data []byte) (*Coded, error) {
		c := new(Coded)
		return c, c.UnmarshalBinary(data)
	})
}

func opened[T any](path, magic string, of func([]byte) (*T, error)) (t *T, err error) {
	err = infile.Parse(path, magic, func(data []byte) (err error) {
		t, err = of(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
