package node

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A page does not end in the midst of a change of several keys where it would lead no further,
// unless it would be larger than a message.
func TestChangesFillAPage(t *testing.T) {
	const asked, behind = Cursor("0000000000000001.5"), Cursor("0000000000000001.6")
	for _, test := range []struct {
		size, count int
		more        bool
	}{{1000, 2, false}, {300 << 10, 2, false}, {300 << 10, 3, false}, {700 << 10, 1, true}} {
		var told []Watched
		for range test.count + 1 {
			told = append(told, Watched{Cursor: asked, Kind: PutKind, Record: &dbadapter.Record{Key: []byte("key"), Value: make([]byte, test.size)}})
		}
		told[test.count-1].Cursor = behind
		if !test.more {
			told = told[:test.count]
		}
		a := &wire.ChangesAnswer{Next: []byte(behind)}
		fillPage(a, told, asked)
		if len(a.Changes) != test.count || a.More != test.more || Cursor(a.Next) != behind {
			t.Errorf("%+v: %d changes, more %v, next %s", test, len(a.Changes), a.More, a.Next)
		}
	}
}
