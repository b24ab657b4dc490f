package phf

import "github.com/syncd-io/syncd/bfield/internal/infile"

// Save writes the Function to a file. It writes and syncs a temporary one next to it, which
// then takes its name. After a crash there is the old file or the new one.
func (f *Function) Save(path string) error { return infile.Marshal(path, f.MarshalBinary) }

// Open returns the Function saved in a file, and reads all of it into memory. Later changes of
// the file change no answer. It fails with an error that wraps ErrFormat if the file holds
// anything else.
func Open(path string) (*Function, error) {
	f := new(Function)
	if err := infile.Parse(path, magic, f.UnmarshalBinary); err != nil {
		return nil, err
	}
	return f, nil
}
