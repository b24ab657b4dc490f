package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func testLimits(t *testing.T, h Harness) {
	e := newEnv(t, h)
	long := strings.Repeat("k", dbadapter.MaxKey+1)
	value := strings.Repeat("v", dbadapter.MaxValue+1)
	unsigned := put("k", "v", at(1))
	unsigned.Record.Signature = []byte("short")
	dead := del("k", at(1))
	dead.Record.Value = []byte("v")
	many := make([]write, dbadapter.MaxBatch+1)
	for i := range many {
		many[i] = put(fmt.Sprint(i), "", at(1))
	}
	heavy := []write{
		put("a", value[:dbadapter.MaxValue], at(1)),
		put("b", value[:dbadapter.MaxBatchBytes-dbadapter.MaxValue-1], at(1)),
	}
	for name, writes := range map[string][]write{
		"no key":               {put("", "v", at(1))},
		"long key":             {put(long, "v", at(1))},
		"long value":           {put("k", value, at(1))},
		"short signature":      {unsigned},
		"tombstone with value": {dead},
		"too many writes":      many,
		"too many bytes":       heavy,
		"a good and a bad one": {put("good", "v", at(1)), put(long, "v", at(1))},
	} {
		if _, err := submit(context.Background(), e.namespace, e.hasher, writes); !errors.Is(err, dbadapter.ErrLimit) {
			t.Errorf("%s: error %v, want ErrLimit", name, err)
		}
	}
	if _, err := submit(context.Background(), e.namespace, e.hasher, []write{{Record: put("k", "v", at(1)).Record, Action: dbadapter.Replace}}); err == nil {
		t.Error("a replacement that names no version was taken")
	}
	e.check()
	if outcomes, err := submit(context.Background(), e.namespace, e.hasher, nil); err != nil || len(outcomes) != 0 {
		t.Errorf("an empty batch gives %v, %v", outcomes, err)
	}
}

// testLargest writes batches at each of the bounds, new and over old ones.
func testLargest(t *testing.T, h Harness) {
	e := newEnv(t, h)
	signature := bytes.Repeat([]byte{7}, dbadapter.SignatureSize)
	var eight []dbadapter.Replaced
	for writer := range dbadapter.WriterID(dbadapter.MaxReplaces) {
		eight = append(eight, dbadapter.Replaced{Writer: writer + 1, Clock: 1})
	}
	for version := 1; version <= 2; version++ {
		v := at(version)
		// As many writes as go, all signed.
		var many []write
		for i := range dbadapter.MaxBatch {
			w := put(fmt.Sprintf("many/%d", i), fmt.Sprint(version, i), v)
			w.Record.Signature, w.Record.Expires, w.Record.Replaces = signature, dbadapter.MaxExpires, eight
			many = append(many, w)
		}
		// As many bytes as go, all keys.
		var keys []write
		for i := range dbadapter.MaxBatchBytes / (2 * dbadapter.MaxKey) {
			key := fmt.Sprintf("keys/%d/", i)
			w := put(key+strings.Repeat("k", dbadapter.MaxKey-len(key)), "", v)
			w.Record.Signature, w.Record.Expires, w.Record.Replaces = signature, dbadapter.MaxExpires, eight
			keys = append(keys, w)
		}
		// The longest value, and the rest of the bytes.
		long := put("long", strings.Repeat(fmt.Sprint(version), dbadapter.MaxValue), v)
		long.Record.Signature, long.Record.Expires, long.Record.Replaces = signature, dbadapter.MaxExpires, eight
		rest := put("rest", strings.Repeat("r", dbadapter.MaxBatchBytes-dbadapter.MaxValue-2*len("long")-2*len("rest")), v)
		for _, writes := range [][]write{many, keys, {long, rest}} {
			for i, o := range e.apply(writes...) {
				if o.Result != dbadapter.Applied {
					t.Fatalf("write %d of %d: %+v", i, len(writes), o)
				}
			}
		}
	}
	e.check()
	e.reopen()
	e.checkLog(manyChanges) // of commits that do not fit into one entry of it
	e.apply(take(dbadapter.Collect, e.twin.records["long"]))
	e.check()
}

var oddKeys = []string{
	"\x00", "\x00\x00", "\x01", "\xff", "\xff\xff", "\xff\xff\xff", "\xfe\xff", "/", "//", "a", "a\x00", "a\x00b", "a/", "a/b", "a0",
	".", "..", "../..", "a/../b", " ", "  a  ", "\n", "\r\n", "\t", "!badger!", "!badger!txn", "ä", "\xe4", "\u2028", "日本", "%2F", "?", "#", "r", "i", "m",
	strings.Repeat("\xff", dbadapter.MaxKey), strings.Repeat("\x00", dbadapter.MaxKey), strings.Repeat("a", dbadapter.MaxKey),
}

// testKeys writes odd keys, and scans from each of them on.
func testKeys(t *testing.T, h Harness) {
	e := newEnv(t, h)
	for i, key := range oddKeys {
		e.apply(put(key, "of "+key, at(i)))
	}
	e.check()
	s := e.snapshot()
	for _, key := range []string{
		"b", "a\x00c", "\x02", "!badger", strings.Repeat("\xff", dbadapter.MaxKey-1), // never written
		"", strings.Repeat("k", dbadapter.MaxKey+1), strings.Repeat("k", 1<<17), // no keys
	} {
		if _, err := s.Get([]byte(key)); !errors.Is(err, dbadapter.ErrNotFound) {
			t.Errorf("Get of %.20q of %d bytes: %v, want ErrNotFound", key, len(key), err)
		}
	}
	places := append([]string{"", "a\x00a", "\xfe", "a/c", "zzz"}, oddKeys...)
	for _, prefix := range places {
		for _, after := range places {
			afters := [][]byte{[]byte(after)}
			if after == "" {
				afters = append(afters, nil)
			}
			for _, after := range afters {
				got, err := e.twin.scan(context.Background(), s, []byte(prefix), after)
				if err != nil {
					t.Fatal(err)
				}
				if err := same(fmt.Sprintf("Scan of %q after %q", prefix, after), got, e.twin.sorted([]byte(prefix), after)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	seen := 0
	for range s.Scan(context.Background(), nil, nil) { // left early
		if seen++; seen == 3 {
			break
		}
	}
	for range s.Pairs(context.Background(), 0, 0) {
		break
	}
	if r, err := s.Get([]byte("a")); err != nil || string(r.Value) != "of a" {
		t.Errorf("after scans left early, Get gives %q, %v", r.Value, err)
	}
}

// testSlices changes what was handed in and what was handed out.
func testSlices(t *testing.T, h Harness) {
	e := newEnv(t, h)
	w := put("key", "value", at(1))
	w.Record.Signature = bytes.Repeat([]byte{1}, dbadapter.SignatureSize)
	w.Record.Replaces = []dbadapter.Replaced{{Writer: 1, Clock: 1}}
	e.apply(w)
	spoil(w.Record)
	s := e.snapshot()
	got, err := s.Get([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	spoil(got)
	for r := range s.Scan(context.Background(), nil, nil) {
		spoil(r.Record)
	}
	bucket, err := s.Bucket(e.hasher.Index([]byte("key")))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range bucket {
		spoil(r.Record)
	}
	if keys := e.observed[0].Keys; len(keys) != 1 || string(keys[0]) != "key" {
		t.Errorf("the observed keys have become %q", keys)
	}
	e.check()
}

// spoil writes over all memory of a record.
func spoil(r dbadapter.Record) {
	for _, b := range [][]byte{r.Key, r.Value, r.Signature} {
		for i := range b {
			b[i] = 'x'
		}
	}
	for i := range r.Replaces {
		r.Replaces[i].Writer = 'x'
	}
}
