// Package infile keeps the structures under bfield/ in files. Each is written whole or
// not at all. It is read into memory, so that later changes of the file change no
// answer. A file mapped into memory would end the process when it is cut. The rest of
// its last page would read as zeros.
package infile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write makes a file of what write writes. It writes and syncs a temporary one next to
// it, which then takes its name. After a crash there is the old file or the new one. The
// temporary one may be left over: its name, path.NUMBER, is drawn, so that several may
// write at once.
func Write(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err = fill(file, write); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := SyncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// fill writes, syncs and closes a file.
func fill(file *os.File, write func(io.Writer) error) error {
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// Marshal is Write of what a MarshalBinary returns.
func Marshal(path string, marshal func() ([]byte, error)) error {
	return Write(path, func(w io.Writer) error {
		data, err := marshal()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}

// Parse has the bytes of a file parsed; they are the function's to keep. Of a file that
// begins otherwise than with magic, which may be large, no more than that is read.
func Parse(path, magic string, parse func([]byte) error) error {
	data, err := bytesOf(path, magic)
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
}

func bytesOf(path, magic string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	start := make([]byte, len(magic))
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if string(start) != magic {
		return start[:n], nil
	}
	return os.ReadFile(path)
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
