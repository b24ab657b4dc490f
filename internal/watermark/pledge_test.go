package watermark

import (
	"errors"
	"reflect"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// A pledge is read as it was written; what cannot be one is refused.
func TestPledgeEncoding(t *testing.T) {
	p := &Pledge{List: [16]byte{1, 2}, Vector: []dbadapter.Timestamp{7, 1 << 63}, Promised: 5, Wanted: 6, Serial: 9, Recovering: true}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParsePledge(b)
	if err != nil || !reflect.DeepEqual(read, p) {
		t.Errorf("%+v read as %+v, %v", p, read, err)
	}
	short, _ := (&Pledge{}).Encode()
	for _, bad := range [][]byte{nil, {0xa0}, b[:len(b)-1], append(b, 0), short} {
		if _, err := ParsePledge(bad); !errors.Is(err, errPledge) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// What a sync with a member tells of third members: what its pledge says, if that is of the process
// that greets, was made before its reading, and is of a member that may write.
func TestPledgeOfTheProcessThatGreets(t *testing.T) {
	for name, c := range map[string]struct {
		writes      bool
		incarnation uint64
		tau, want   dbadapter.Timestamp
	}{
		"the same process":                {true, 5, 200, 70},
		"a reading of when it was made":   {true, 5, 100, 70},
		"a reading before it":             {true, 5, 99, 0},
		"another process, maybe a copy's": {true, 6, 200, 0},
		"a member that only reads":        {false, 5, 200, 0},
	} {
		w := New("1", false, State{})
		w.SetMembers(Members{List: [16]byte{1}, Active: []roster.ID{"1", "2", "3"}}, 1)
		p := &Pledge{List: w.list, Vector: []dbadapter.Timestamp{70, 70, 70}}
		w.Receive("2", p, dbadapter.Version{Clock: 100, Writer: 2, Incarnation: 5})
		w.Synced(&Sync{Peer: "2", Writes: c.writes, Basis: w.Basis(), Incarnation: c.incarnation, Tau: c.tau, Clean: true}, 300)
		if w.known["3"] != c.want || w.known["2"] != c.tau {
			t.Errorf("%s: of the third member %d is known, want %d; of the peer %d", name, w.known["3"], c.want, w.known["2"])
		}
	}
}
