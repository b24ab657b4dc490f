package peer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// An audit is content with what commits and syncs make, and sees each kind of
// drift.
func TestAudit(t *testing.T) {
	n := openForTest(t, Config{})
	ns := createForTest(t, n, Policy{})
	for i := range 200 {
		must(t, errOf(ns.Put(t.Context(), fmt.Append(nil, i%150), fmt.Append(nil, i))))
	}
	must(t, errOf(ns.Delete(t.Context(), []byte("7"))))
	must(t, ns.Audit(t.Context()))
	_, _, seq := ns.shards()[0].set.Live.State()
	for what, change := range map[string]dbadapter.Change{
		"a pair":   {Index: 5, New: dbadapter.Checksum(rateless.Seal(5, 7))},
		"a digest": {Delta: dbadapter.Digest{1}},
		"a number": {Records: 1},
	} {
		change.Seq = seq
		ns.shards()[0].set.Live.Observe([]dbadapter.Change{change})
		if err := ns.Audit(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s too many: %v", what, err)
		}
		change.Old, change.New, change.Records = change.New, change.Old, -change.Records
		change.Delta = dbadapter.Digest{}.Sub(change.Delta)
		ns.shards()[0].set.Live.Observe([]dbadapter.Change{change})
		if err := ns.Audit(t.Context()); err != nil {
			t.Errorf("without %s: %v", what, err)
		}
	}
	shut := ns.node
	must(t, shut.Close(t.Context()))
	if err := ns.Audit(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed node: %v", err)
	}
}
