package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
)

// ListFile is, in the folder of a namespace, the copy of the statements of its list of
// members. It is for where the store loses some to damage. Each follows its length
// and its CRC-32C, 4 bytes each, big-endian. New ones are appended: what a change of the
// list writes does not grow with the list.
const (
	ListFile   = "members.log"
	listMagic  = "syncd list of members, format 1\n"
	listHeader = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// listCopy is the file of a namespace. Its calls are made one after another.
type listCopy struct {
	log  *slog.Logger
	path string
	// held are the hashes of what the file holds; nil: it is to be written anew.
	held map[[sha256.Size]byte]bool
	// unread: what the file holds is not known, so that it is left as it is.
	unread bool
}

// OpenListCopy reads the copy of the list of members of a namespace, and gives what keeps
// it. What is damaged of it is left out, and the next write begins the file anew. Both
// results are nil for a node without a folder.
func OpenListCopy(log *slog.Logger, dir string, id dbadapter.NamespaceID) (listed [][]byte, keep func([][]byte)) {
	if dir == "" {
		return nil, nil
	}
	c := &listCopy{log: log, path: filepath.Join(Path(dir, id), ListFile)}
	data, err := os.ReadFile(c.path)
	if err != nil {
		data = nil
	} else {
		var whole bool
		if listed, whole = parseList(data); whole {
			c.held = map[[sha256.Size]byte]bool{}
			for _, s := range listed {
				c.held[sha256.Sum256(s)] = true
			}
		} else {
			err = errors.New("it is damaged, or was cut short")
		}
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
	case data == nil: // the disk, or a limit of the process: another start may read it
		c.unread = true
		c.log.Warn("the copy of the list of members could not be read: it is left as it is, and not used before the next start", slog.Any("error", err))
	default:
		c.log.Warn("the copy of the list of members is made anew", slog.Any("error", err))
	}
	return listed, c.keep
}

// keep adds to the copy what it lacks. The store has what it holds.
func (c *listCopy) keep(statements [][]byte) {
	if c.unread {
		return
	}
	if err := c.write(statements); err != nil {
		c.held = nil // it may have a part of them
		c.log.Warn("the copy of the list of members could not be written: it lacks the last changes until the next one, or the next start", slog.Any("error", err))
	}
}

func (c *listCopy) write(statements [][]byte) error {
	var fresh [][]byte
	for _, s := range statements {
		if !c.held[sha256.Sum256(s)] {
			fresh = append(fresh, s)
		}
	}
	anew := c.held == nil || len(c.held)+len(fresh) > 2*len(statements) // most of it has left the list
	switch {
	case anew:
		if err := durable.WriteFile(c.path, appendList([]byte(listMagic), statements)); err != nil {
			return err
		}
		c.held, fresh = make(map[[sha256.Size]byte]bool, len(statements)), statements
	case len(fresh) == 0:
		return nil
	default:
		if err := appendFile(c.path, appendList(nil, fresh)); err != nil {
			return err
		}
	}
	for _, s := range fresh {
		c.held[sha256.Sum256(s)] = true
	}
	return nil
}

// appendFile makes more bytes of a file durable.
func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func appendList(b []byte, statements [][]byte) []byte {
	for _, s := range statements {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(s, castagnoli))
		b = append(b, s...)
	}
	return b
}

// parseList reads a copy, but for what is damaged of it. It goes on behind a damaged
// statement, as long as lengths fit.
func parseList(b []byte) (statements [][]byte, whole bool) {
	b, ok := bytes.CutPrefix(b, []byte(listMagic))
	if !ok {
		return nil, false
	}
	whole = true
	for len(b) > 0 {
		if len(b) < listHeader {
			return statements, false
		}
		size, sum := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		b = b[listHeader:]
		if uint64(size) > uint64(len(b)) {
			return statements, false
		}
		if crc32.Checksum(b[:size], castagnoli) == sum {
			statements = append(statements, b[:size:size])
		} else {
			whole = false
		}
		b = b[size:]
	}
	return statements, whole
}
