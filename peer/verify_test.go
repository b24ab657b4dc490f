package peer

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

// A node that was closed in order takes up a summary, and does not read its records;
// Verify puts right what has drifted, and names the file that is damaged.
func TestVerify(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &Log{}
	config := Config{Dir: dir, Logger: log.Logger(slog.LevelInfo)}
	n := openForTest(t, config)
	ns := createForTest(t, n, Policy{Unsigned: true})
	const records = 5 * 4000
	for at := 0; at < records; at += 4000 {
		if err := ns.Batch(t.Context(), func(b *Batch) error {
			for i := range 4000 {
				b.Put(fmt.Appendf(nil, "key %d", at+i), []byte("value"))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := ns.Info()
	must(t, n.Close(t.Context()))
	n = openForTest(t, config)
	ns = notes(t, n)
	if got := ns.Info(); got.Digest != want.Digest || got.Records != records || log.With("was taken up") != 1 {
		t.Fatalf("after a restart it holds %d records, and has taken up %d summaries", got.Records, log.With("was taken up"))
	}
	if v, err := ns.Verify(t.Context()); err != nil || v != (status.Verification{Records: records, Files: true}) {
		t.Fatalf("a sound node: %+v, %v", v, err)
	}
	_, _, seq := ns.shards()[0].set.Live.State()
	ns.shards()[0].set.Live.Observe([]dbadapter.Change{{Seq: seq, Index: 5, New: dbadapter.Checksum(rateless.Seal(5, 7)), Records: 1}})
	if v, err := ns.Verify(t.Context()); err != nil || v.Drift == "" || ns.shards()[0].set.Live.Drifted() != 1 || log.With("had drifted") != 1 {
		t.Fatalf("a node that has drifted: %+v, %v", v, err)
	}
	if v, err := ns.Verify(t.Context()); err != nil || v.Drift != "" {
		t.Fatalf("once that is put right: %+v, %v", v, err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, folder.StoreDir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("there is no table", err)
	}
	info, err := os.Stat(tables[0])
	must(t, err)
	f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, 1)
	must(t, errOf(f.ReadAt(b, 500)))
	must(t, errOf(f.WriteAt([]byte{b[0] ^ 1}, 500)))
	must(t, os.Chtimes(tables[0], time.Time{}, info.ModTime()))
	if _, err := ns.Verify(t.Context()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(tables[0])) {
		t.Errorf("a flipped bit of %s gives %v", tables[0], err)
	}
}
