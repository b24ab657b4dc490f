package kvstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// Trimming the conflicts never reads from where it has trimmed before: a database steps
// over what was deleted there.
func TestTrimmingGoesOn(t *testing.T) {
	const number = 1 // of the first namespace
	conflicts := append(appendPrefix(nil, number, layout.KindKept), byte(dbadapter.KeptConflict))
	var from [][]byte
	_, n := openHooked(t, &hooks{seek: func(prefix, to []byte) {
		if bytes.Equal(prefix, conflicts) {
			from = append(from, bytes.Clone(to))
		}
	}})
	for version := range 14 {
		var writes []dbadapter.Write
		for i := range 1000 {
			w := write(fmt.Sprint(i), version+1)
			w[0].Record.Version.Writer = dbadapter.WriterID(version + 1) // it has not seen the one before
			w[0].Record.Value = fmt.Append(nil, version)
			w[0].Record = hashed(n.Hasher, w[0].Record.Record)
			writes = append(writes, w...)
		}
		apply(t, n, writes)
	}
	if got := n.KeptCount(dbadapter.KeptConflict); got != dbadapter.MaxConflicts {
		t.Fatalf("%d conflicts are kept", got)
	}
	if len(from) < 3 {
		t.Fatalf("trimmed %d times", len(from))
	}
	for i := 1; i < len(from); i++ {
		if bytes.Compare(from[i], from[i-1]) <= 0 {
			t.Errorf("trimming %d begins at %x, the one before at %x", i, from[i], from[i-1])
		}
	}
}
