package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
)

// pushes holds a push of each kind, with records of each shape.
func pushes() []*PushMessage {
	var records []dbadapter.Record
	for _, m := range samples() {
		r, ok := m.(*Records)
		if !ok {
			continue
		}
		for i := range r.Records {
			if s := &r.Records[i]; !s.Stub && !s.Withheld {
				records = append(records, s.Record)
			}
		}
	}
	return []*PushMessage{
		{Origin: []byte("origin"), Incarnation: 0x99aabbccddeeff00, Number: 300, Kind: PushRecords, Records: records},
		{Origin: []byte("o"), Incarnation: 1, Number: 1, Kind: PushMore},
		{Origin: []byte("o"), Incarnation: 1, Kind: PushDigest, Sets: Sets{Data: dbadapter.Digest{1, 2, 3, 4}, Control: dbadapter.Digest{5}}},
	}
}

func encodePush(m *PushMessage) []byte {
	var records []byte
	for i := range m.Records {
		records = AppendPushed(records, &m.Records[i])
	}
	return AppendPush(nil, m, records)
}

func TestPushVectors(t *testing.T) {
	var b strings.Builder
	b.WriteString("# One push of each kind: its fields, and its bytes, in the notation of vectors.txt. docs/protocol, \"Pushes\", has the layout.\n")
	for _, m := range pushes() {
		data := encodePush(m)
		fmt.Fprintf(&b, "Push%s\n  %s\n", fields(reflect.ValueOf(m).Elem()), hex.EncodeToString(data))
		got, err := ParsePush(data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encodePush(got), data) || got.Kind != m.Kind || got.Number != m.Number || got.Incarnation != m.Incarnation || got.Sets != m.Sets || len(got.Records) != len(m.Records) {
			t.Errorf("%+v is read as %+v", m, got)
		}
	}
	golden.Compare(t, "testdata/pushes.txt", b.String())
}

// A push that ends early, has more behind it, or says what is not known, is refused.
func TestPushesThatAreRefused(t *testing.T) {
	refused := func(what string, data []byte) {
		t.Helper()
		if m, err := ParsePush(data); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	for _, m := range pushes() {
		data := encodePush(m)
		ends := map[int]bool{} // where one record ends a push may end, too
		for i := range m.Records {
			short := *m
			short.Records = m.Records[:i]
			ends[len(encodePush(&short))] = i > 0
		}
		for n := range data {
			if !ends[n] {
				refused(fmt.Sprintf("kind %d cut at %d", m.Kind, n), data[:n])
			}
		}
		if m.Kind != PushRecords {
			refused("more behind it", append(bytes.Clone(data), 0))
		}
		data[0]++
		refused("another version", data)
		data[0]--
		data[1] = byte(PushDigest) + 1
		refused("another kind", data)
	}
	refused("too long", make([]byte, MaxPush+1))
	withheld := encodePush(pushes()[0])
	withheld[len(AppendPush(nil, pushes()[0], nil))] |= 1 << 4 // withheld
	refused("a withheld record", withheld)
}

func FuzzParsePush(f *testing.F) {
	for _, m := range pushes() {
		f.Add(encodePush(m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParsePush(data)
		if err != nil {
			return
		}
		again, err := ParsePush(encodePush(m))
		if err != nil || !bytes.Equal(encodePush(again), encodePush(m)) {
			t.Errorf("%+v is read again as %+v, %v", m, again, err)
		}
	})
}
