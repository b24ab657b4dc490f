package saved

import (
	"encoding"
	"fmt"
	"os"

	"github.com/syncd-io/syncd/internal/durable"
)

// Save writes the saved form of a structure to a file. After a crash there is the old file
// or the new one.
func Save(path string, of encoding.BinaryMarshaler) error {
	data, err := of.MarshalBinary()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, data)
}

// Open returns what parse makes of the bytes of a file, which are its to keep. They are in
// memory, so that later changes of the file change no answer. A file mapped into memory
// would end the process when it is cut. The rest of its last page would read as zeros.
func Open[T any](path string, parse func([]byte) (*T, error)) (*T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return t, nil
}

// Unmarshal makes t what parse makes of data; after an error it is as it was.
func Unmarshal[T any](t *T, data []byte, parse func([]byte) (*T, error)) error {
	read, err := parse(data)
	if err == nil {
		*t = *read
	}
	return err
}
