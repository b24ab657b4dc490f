package dbadapter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestValidateOptional(t *testing.T) {
	key, at := []byte("k"), TimestampAt(Epoch.AddDate(5, 0, 0))
	v := Version{Clock: at, Writer: 1}
	nine := make([]Replaced, MaxReplaces+1)
	for i := range nine {
		nine[i] = Replaced{WriterID(i + 1), 1}
	}
	for _, test := range []struct {
		name string
		r    Record
		ok   bool
	}{
		{"expires", Record{Key: key, Version: v, Expires: at}, true},
		{"a dated one expires", Record{Key: key, Version: Version{Clock: at}, Expires: at}, true},
		{"the last expiry", Record{Key: key, Version: v, Expires: MaxExpires}, true},
		{"later than the last expiry", Record{Key: key, Version: v, Expires: MaxExpires + 1<<16}, false},
		{"no whole millisecond", Record{Key: key, Version: v, Expires: at + 1}, false},
		{"a tombstone that expires", Record{Key: key, Version: v, Deleted: true, Expires: at}, false},
		{"replaces eight", Record{Key: key, Version: v, Replaces: nine[:MaxReplaces]}, true},
		{"a tombstone that replaces", Record{Key: key, Version: v, Deleted: true, Replaces: nine[:1]}, true},
		{"replaces nine", Record{Key: key, Version: v, Replaces: nine}, false},
		{"replaces out of order", Record{Key: key, Version: v, Replaces: []Replaced{{2, 1}, {1, 1}}}, false},
		{"replaces twice", Record{Key: key, Version: v, Replaces: []Replaced{{2, 1}, {2, 2}}}, false},
		{"replaces without a writer", Record{Key: key, Version: v, Replaces: []Replaced{{0, 1}}}, false},
		{"replaces the future", Record{Key: key, Version: v, Replaces: []Replaced{{2, at}}}, false},
		{"replaces the last moment", Record{Key: key, Version: v, Replaces: []Replaced{{2, at - 1}}}, true},
		{"a dated one that replaces", Record{Key: key, Version: Version{Clock: at}, Replaces: nine[:1]}, false},
	} {
		if err := test.r.Validate(); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", test.name, err)
		}
		// What cannot be stored is not parsed either.
		back := Record{Key: key, Version: test.r.Version, Deleted: test.r.Deleted}
		b := append(test.r.AppendOptional(nil), "rest"...)
		if len(b)-4 != test.r.OptionalSize() || len(b)-4 > MaxOptional && test.ok {
			t.Errorf("%s: %d bytes, announced as %d", test.name, len(b)-4, test.r.OptionalSize())
		}
		rest, err := back.ReadOptional(test.r.OptionalFlags(), b)
		if (err == nil) != test.ok || test.ok && (string(rest) != "rest" || !reflect.DeepEqual(back, test.r)) {
			t.Errorf("%s: reads as %+v, %q, %v", test.name, back, rest, err)
		}
	}
}

// What ReadOptional accepts, AppendOptional writes alike; nothing makes it panic.
func FuzzReadOptional(f *testing.F) {
	full := Record{Version: Version{Clock: 1 << 60, Writer: 1}, Expires: 1 << 20, Replaces: []Replaced{{1, 2}, {3, 4}}}
	f.Add(uint64(1<<60), byte(FlagExpires|FlagReplaces), full.AppendOptional(nil))
	f.Add(uint64(5), byte(FlagExpires), make([]byte, 8))
	f.Add(uint64(5), byte(FlagReplaces), []byte{0})
	f.Add(uint64(5), byte(FlagReplaces), []byte{255, 1})
	f.Add(uint64(0), byte(0), []byte{})
	f.Fuzz(func(t *testing.T, clock uint64, flags byte, b []byte) {
		r := Record{Key: []byte("k"), Version: Version{Clock: Timestamp(clock), Writer: 1}}
		rest, err := r.ReadOptional(flags, b)
		if err != nil {
			return
		}
		if got := append(r.AppendOptional(nil), rest...); !bytes.Equal(got, b) || r.OptionalFlags() != flags&(FlagExpires|FlagReplaces) {
			t.Errorf("%x with flags %#x is read as %+v, which is %x", b, flags, r, got)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%x was read, and does not hold: %v", b, err)
		}
	})
}

func TestExpired(t *testing.T) {
	at := Epoch.AddDate(6, 0, 0)
	r := Record{Expires: TimestampAt(at)}
	if r.Expired(at.Add(-time.Nanosecond)) || !r.Expired(at) || !r.Expired(at.Add(time.Hour)) {
		t.Error("a record expires at another time than it says")
	}
	if r.Expired(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)) {
		t.Error("a record has expired by a clock that stands before 1970")
	}
	if (&Record{}).Expired(at) {
		t.Error("a record without an expiry has expired")
	}
}

// A byte that moves between the optional fields, the key and the value makes
// another digest, and so does each of the fields.
func TestDigestCoversOptionalFields(t *testing.T) {
	h := NewHasher(Secret{1})
	v := Version{1 << 60, 2, 3}
	eight := binary.BigEndian.AppendUint64(nil, 5<<16)
	sixteen := append(bytes.Clone(eight), eight...)
	seen := map[Digest]string{}
	for name, r := range map[string]Record{
		"nothing":          {Key: []byte("key"), Version: v},
		"expires":          {Key: []byte("key"), Version: v, Expires: 5 << 16},
		"expires later":    {Key: []byte("key"), Version: v, Expires: 6 << 16},
		"in the key":       {Key: append(bytes.Clone(eight), "key"...), Version: v},
		"in the value":     {Key: []byte("key"), Version: v, Value: eight},
		"replaces":         {Key: []byte("key"), Version: v, Replaces: []Replaced{{5 << 16, 5 << 16}}},
		"replaces another": {Key: []byte("key"), Version: v, Replaces: []Replaced{{6 << 16, 5 << 16}}},
		"replaces a later": {Key: []byte("key"), Version: v, Replaces: []Replaced{{5 << 16, 6 << 16}}},
		"replaces two":     {Key: []byte("key"), Version: v, Replaces: []Replaced{{5 << 16, 5 << 16}, {6 << 16, 5 << 16}}},
		"16 in the key":    {Key: append(append([]byte{1}, sixteen...), "key"...), Version: v},
		"16 in the value":  {Key: []byte("key"), Version: v, Value: append([]byte{1}, sixteen...)},
		"both":             {Key: []byte("key"), Version: v, Expires: 5 << 16, Replaces: []Replaced{{5 << 16, 5 << 16}}},
		"both, then less":  {Key: append([]byte("key"), 1), Version: v, Expires: 5 << 16},
	} {
		d := h.Digest(&r)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}
