package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Verify reads all files of a generation through and compares them with the
// manifest. read, if not nil, is told of each piece.
func (f *Folder) Verify(ctx context.Context, m *Manifest, read func(bytes int)) error {
	for _, one := range m.Files {
		if err := f.verify(ctx, m.Generation, one, read); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) verify(ctx context.Context, generation int, want File, read func(bytes int)) error {
	path := f.File(generation, want.Name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(path, "is missing")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != want.Size {
		return damaged(path, "has %d bytes, and had %d", info.Size(), want.Size)
	}
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.Read(buf)
		sum.Write(buf[:n])
		if read != nil {
			read(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(path, "cannot be read: %v", err)
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return damaged(path, "is not what was written: its SHA-256 does not match")
	}
	return nil
}
