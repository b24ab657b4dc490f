package peer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
)

func TestNewerFormatIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	ns := createForTest(t, n, Policy{})
	must(t, n.Close(t.Context()))
	f, err := folder.Load(folder.Path(dir, ns.ID()), ns.ID(), "")
	must(t, err)
	old := f.State.Format
	f.State.Format = node.StateFormat + 1
	must(t, f.Save())
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer state: %v", err)
	}
	f.State.Format = old
	must(t, f.Save())
	must(t, os.WriteFile(filepath.Join(dir, folder.AddressBookFile), []byte("syncd file 2 peers - 0 14bfc8f70d29f918\n"), 0o600))
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer address book: %v", err)
	}
}

// The decisions and the network name a node alike: by the same bytes, text and
// writer id.
func TestIDsAgree(t *testing.T) {
	for range 20 {
		key, err := folder.FreshKey("")
		must(t, err)
		self, err := newIdentity(key)
		must(t, err)
		raw, err := key.GetPublic().Raw()
		must(t, err)
		message, err := crypto.MarshalPublicKey(key.GetPublic())
		must(t, err)
		id := node.IDOf(raw)
		writer, err := id.Writer()
		sum := sha256.Sum256(message)
		if string(id) != string(self.id) || id.String() != self.id.String() || err != nil || uint64(writer) != binary.BigEndian.Uint64(sum[:]) {
			t.Errorf("the node %s is %s, and writes as %s, %v", self.id, id, writer, err)
		}
	}
}
