package node

import (
	"errors"
	"reflect"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A pledge is read as it was written; what cannot be one is refused.
func TestPledgeEncoding(t *testing.T) {
	p := &Pledge{List: [16]byte{1, 2}, Vector: []dbadapter.Timestamp{7, 1 << 63}, Promised: 5, Wanted: 6, Serial: 9, Recovering: true}
	b, err := p.encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := parsePledge(b)
	if err != nil || !reflect.DeepEqual(read, p) {
		t.Errorf("%+v read as %+v, %v", p, read, err)
	}
	short, _ := (&Pledge{}).encode()
	for _, bad := range [][]byte{nil, {0xa0}, b[:len(b)-1], append(b, 0), short} {
		if _, err := parsePledge(bad); !errors.Is(err, errPledge) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}
