// Package settings reads the configuration file, a flat YAML map whose keys
// are the names of flags:
//
//	listen: [/ip4/0.0.0.0/tcp/4747]
//	log-format: json
//
// A flag on the command line wins over its environment variable, that over
// the file, and the file over the default. Secrets have no place in the file;
// they have files of their own, named here.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FileName is the configuration file's name within the data directory.
const FileName = "config.yaml"

// maxFile bounds the configuration file, in bytes.
const maxFile = 1 << 20

// File is what a configuration file says.
type File struct {
	path   string
	values map[string]any
}

// Load reads the file at path, whose keys must be among known. With optional
// set, a file that does not exist counts as empty.
func Load(path string, known []string, optional bool) (*File, error) {
	raw, err := read(path)
	if err != nil && (!optional || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return parse(path, raw, known)
}

func parse(path string, raw []byte, known []string) (*File, error) {
	f := &File{path: path}
	documents := yaml.NewDecoder(bytes.NewReader(raw))
	err := documents.Decode(&f.values)
	if err == nil {
		if err = documents.Decode(new(any)); err == nil {
			err = errors.New("it has more than one document; make them one, without ---")
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	for _, key := range f.Keys() {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("configuration %s: unknown key %q; known are %s", path, key, strings.Join(known, ", "))
		}
		if _, _, err := f.Get(key); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), maxFile)
	}
	return os.ReadFile(path)
}

// Path is the file's path, whether or not it exists.
func (f *File) Path() string { return f.path }

// Keys are the keys that the file sets, sorted.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.values)) }

// Get returns the value under a key as text, as it would stand on the command
// line (a list is joined by commas), and whether the file sets it.
func (f *File) Get(key string) (string, bool, error) {
	value, ok := f.values[key]
	if !ok {
		return "", false, nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	texts := make([]string, len(list))
	for i, v := range list {
		switch v.(type) {
		case string, bool, int, float64:
			texts[i] = fmt.Sprint(v)
		default:
			return "", false, fmt.Errorf("configuration %s: the value of %q must be a string, number, boolean or a list of them", f.path, key)
		}
	}
	return strings.Join(texts, ","), true, nil
}

// Encode writes settings as a configuration file.
func Encode(m map[string]any) ([]byte, error) { return yaml.Marshal(m) }
