package peer

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
)

// listFile is, in the folder of a namespace, the copy of the statements of its list of
// members, for where the store loses some to damage.
const listFile = "members.cbor"

type listCopy struct {
	Format     int      `cbor:"1,keyasint"`
	Statements [][]byte `cbor:"2,keyasint"`
}

// listed reads the copy; it returns nil for a copy that it cannot read, and the opening
// writes another.
func (n *Node) listed(id dbadapter.NamespaceID, name string) [][]byte {
	if n.dir == "" {
		return nil
	}
	var c listCopy
	path := filepath.Join(namespaceDir(n.dir, id), listFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = decodeState(path, data, &c)
	}
	if err == nil {
		err = checkFormat(path, c.Format)
	}
	if err != nil {
		n.log.Warn("the copy of the list of members cannot be read, and is made anew", slog.String("ns", name), logError(err))
		return nil
	}
	return c.Statements
}

// keepList writes the copy. The store has what it holds.
func (n *Node) keepList(id dbadapter.NamespaceID, name string) func([][]byte) {
	if n.dir == "" {
		return nil
	}
	path := filepath.Join(namespaceDir(n.dir, id), listFile)
	return func(statements [][]byte) {
		data, err := cbor.Marshal(listCopy{bookFormat, statements})
		if err == nil {
			err = durable.WriteFile(path, data)
		}
		if err != nil {
			n.log.Warn("the copy of the list of members could not be written: it lacks the last changes until the next one, or the next start", slog.String("ns", name), logError(err))
		}
	}
}
