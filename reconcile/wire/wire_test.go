package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/golden"
)

// samples holds a message of each kind, each field with a value of its own.
func samples() []Message {
	version := dbadapter.Version{Clock: 0x0199c0ffee000001, Writer: 0x1122334455667788, Incarnation: 0x99aabbccddeeff00}
	signature := bytes.Repeat([]byte{0x5a}, dbadapter.SignatureSize)
	plain := dbadapter.Record{Key: []byte("k"), Value: []byte("v"), Version: version}
	dated := dbadapter.Record{Key: []byte{0, 0xff, '/'}, Value: []byte{}, Version: dbadapter.Version{Clock: 0x0199c0ffee000000}}
	gone := dbadapter.Record{Key: []byte("gone"), Deleted: true, Version: version, Signature: signature}
	offered := plain
	offered.Value, offered.Signature = nil, signature
	imported := dated
	imported.Signature, imported.Signer = signature, 0x1122334455667788
	withheld := plain
	withheld.Value = nil
	plainOffer := dated
	plainOffer.Value = nil
	row := ShardRow{Shard: 300, Row: [16]byte{1, 15: 2}, Gone: [8]byte{3, 7: 4}}
	greeting := Greeting{List: [16]byte{1, 15: 2}, Tau: 0x0199c0ffee000003, Floor: 0x0199c0ffee000002, Incarnation: 0x99aabbccddeeff00, Time: 1763726400123}
	fleeting, replacing := plain, gone
	fleeting.Expires = 0x01a0000000000000
	replacing.Replaces = []dbadapter.Replaced{{Writer: 5, Clock: 6}, {Writer: 0x1122334455667788, Clock: 0x0199c0ffee000000}}
	both := imported
	both.Version, both.Signer, both.Expires, both.Replaces = version, 0, fleeting.Expires, replacing.Replaces
	bothWithheld, bothOffered, fleetingDated := both, both, imported
	bothWithheld.Value, bothWithheld.Signature = nil, nil
	bothOffered.Value = nil
	fleetingDated.Expires = fleeting.Expires
	askedFor := both
	askedFor.Value = nil
	return []Message{
		&Hello{
			Version: Version, Mapping: rateless.MappingVersion, Namespace: dbadapter.NamespaceID{1, 2, 3}, Nonce: Nonce{4}, Proof: Proof{5},
			Direction: Push, Method: MethodAll, DryRun: true, ListsMayDiffer: true, Prefix: []byte("a/"), Sum: dbadapter.Sum{Records: 300, Digest: dbadapter.Digest{1, 2, 3, 4}}, Greeting: greeting,
			Estimator: rateless.Estimator{7, 8, 9}, Cells: []rateless.Cell{{}, {S1: 1, S2: 2, Count: 15}},
		},
		&Hello{Version: 9},
		&Welcome{Nonce: Nonce{6}, Proof: Proof{7}, Sum: dbadapter.Sum{Records: 5, Digest: dbadapter.Digest{0, 0, 0, 1}}, Greeting: Greeting{Time: 1763726400456}},
		&Same{},
		&More{Cells: 1000},
		&Cells{Cells: []rateless.Cell{{S1: 1 << 40, S2: 5, Count: 1}}},
		&Cells{Estimator: rateless.Estimator{7, 8, 9}, Cells: []rateless.Cell{{}}},
		&Indices{Role: Lacking, Indices: []dbadapter.Index{1, 2, 1 << 41}},
		&Offers{Wanting: true, Offers: []Offer{{Record: offered, Hashed: true, Hash: [32]byte{1}}, {Record: plainOffer}}},
		&Result{Method: MethodSketch, Residual: dbadapter.Digest{9}, Told: 1<<63 + 5, Bytes: 4096, Estimate: 77},
		&Answer{Residual: dbadapter.Digest{9}, Closing: true},
		&Records{Records: []Sent{{Record: plain}, {Record: dated}, {Record: imported}, {Record: gone}, {Record: offered, Stub: true}, {Record: withheld, Withheld: true, Why: ReasonFloor, Digest: dbadapter.Digest{1, 2, 3, 4}}}},
		&End{Applied: 3, Held: 2, Collectable: 1, Refusals: []Refusal{{Index: 5, Digest: dbadapter.Digest{6}, Reason: ReasonWriter}}},
		&Refuse{Code: CodeVersion, Version: Version, Text: "other version"},
		&Refuse{Code: CodeRemoved, Version: Version, Statements: [][]byte{[]byte("statement"), []byte("another")}},
		&Working{},
		&Hello{Version: Version, Mapping: rateless.MappingVersion, Prefix: []byte{}, Span: Span{From: 64, To: 4000}, Cells: []rateless.Cell{}, Sum: dbadapter.Sum{Records: 3, Digest: dbadapter.Digest{5}}},
		&Result{Method: MethodAll, Bytes: 7},
		&Sums{Sums: []uint64{1, 1<<64 - 2}},
		&Result{Method: MethodParts, Estimate: 70_000},
		&Result{Method: MethodRanges, Residual: dbadapter.Digest{8}},
		&Hashes{Groups: 5, Hashes: []uint64{1, 2}},
		&Hashes{},
		&Listing{Ranges: []dbadapter.Range{0, 7, 4095}, Left: []dbadapter.Range{8}, Marks: 300, Sum: dbadapter.Sum{Records: 400, Digest: dbadapter.Digest{1, 2, 3, 4}}},
		&Listing{},
		&Ask{Version: Version, Namespace: dbadapter.NamespaceID{1, 2, 3}, Nonce: Nonce{4}, Proof: Proof{5}, Greeting: greeting, Patience: 30_000, Question: &AskKey{Held: askedFor, Digest: dbadapter.Digest{1, 2, 3, 4}}},
		&Ask{Version: Version, Question: &AskKey{Held: dbadapter.Record{Key: []byte("k")}}},
		&Ask{Version: Version, Question: &AskSet{Sum: dbadapter.Sum{Records: 300, Digest: dbadapter.Digest{1, 2, 3, 4}}}},
		&Reply{Nonce: Nonce{6}, Proof: Proof{7}, Greeting: greeting, Subject: SubjectKey, Answer: &KeyAnswer{Held: askedFor, Digest: dbadapter.Digest{1, 2, 3, 4}, Declines: ReasonWriter}},
		&Reply{Subject: SubjectKey, Answer: &KeyAnswer{Held: askedFor, Digest: dbadapter.Digest{1, 2, 3, 4}, Declined: ReasonClock, Rest: 300_000}},
		&Reply{Subject: SubjectKey, Answer: &KeyAnswer{}},
		&Ask{Version: Version, Question: &AskStatus{}},
		&Reply{Subject: SubjectStatus, Answer: &StatusAnswer{}},
		&Reply{Subject: SubjectStatus, Answer: &StatusAnswer{Unable: 5}},
		&Reply{Subject: SubjectStatus, Answer: &StatusAnswer{
			Sum: dbadapter.Sum{Records: 300, Digest: dbadapter.Digest{1, 2, 3, 4}}, Newest: 0x0199c0ffee000003, Damaged: true, Program: "v1.2.3",
			Disk: &Disk{Taken: 1 << 30, Free: 5}, Proved: &Proved{With: []byte("peer"), At: 1763726400123, Differences: 7},
		}},
		&Reply{Subject: SubjectSet, Answer: &SetAnswer{Sum: dbadapter.Sum{Records: 300, Digest: dbadapter.Digest{1, 2, 3, 4}}}},
		&Ask{Version: Version, Namespace: dbadapter.NamespaceID{1, 2, 3}, Nonce: Nonce{4}, Proof: Proof{5}, Greeting: greeting, Question: &AskRecord{ShardRow: row, Key: []byte("k")}},
		&Ask{Version: Version, Question: &AskRecord{ShardRow: row, Head: true, Key: []byte("k")}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: ShardRow{Shard: MaxShards - 1}, Records: []dbadapter.Record{both, gone, imported}}},
		&Ask{Version: Version, Question: &AskHold{Records: []dbadapter.Record{plain}}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: row, New: true, Records: []dbadapter.Record{both, plain}}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: row, New: true, Earliest: 5 << 16, Records: []dbadapter.Record{imported}}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: row, Batch: true, Records: []dbadapter.Record{both, plain}}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: row, Batch: true, On: []*dbadapter.Version{nil, {}, &imported.Version}, Records: []dbadapter.Record{both, plain, gone}}},
		&Reply{Nonce: Nonce{6}, Proof: Proof{7}, Greeting: greeting, Subject: SubjectRecord, Answer: &RecordAnswer{Whole: true, Record: &both}},
		&Reply{Subject: SubjectRecord, Answer: &RecordAnswer{Whole: true}},
		&Reply{Subject: SubjectRecord, Answer: &RecordAnswer{Whole: true, Head: version}},
		&Reply{Subject: SubjectRecord, Answer: &RecordAnswer{Record: &gone}},
		&Reply{Subject: SubjectRecord, Answer: &Apart{}},
		&Reply{Subject: SubjectHold, Answer: &HoldAnswer{Outcomes: []HoldOutcome{{}, {Other: &dbadapter.Record{Version: version, Replaces: replacing.Replaces}}, {Declined: ReasonFloor}, {Other: &dbadapter.Record{Version: dated.Version}}}}},
		&Reply{Subject: SubjectHold, Answer: &HoldAnswer{Whole: true, Outcomes: []HoldOutcome{{}}}},
		&Reply{Subject: SubjectHold, Answer: &HoldAnswer{Whole: true, Outcomes: []HoldOutcome{{There: true, Other: &dbadapter.Record{Version: dbadapter.Version{Clock: 1, Writer: 2, Incarnation: 3}}}, {}}}},
		&Reply{Subject: SubjectHold, Answer: &Apart{}},
		&Ask{Version: Version, Question: &AskScan{ShardRow: row, Most: BatchBytes, Prefix: []byte("k"), After: []byte("k1")}},
		&Ask{Version: Version, Question: &AskScan{Prefix: []byte{}, After: []byte{}}},
		&Reply{Subject: SubjectScan, Answer: &ScanAnswer{Whole: true, More: true, Records: []dbadapter.Record{both, gone}}},
		&Reply{Subject: SubjectScan, Answer: &ScanAnswer{Whole: true}},
		&Reply{Subject: SubjectScan, Answer: &ScanAnswer{}},
		&Reply{Subject: SubjectScan, Answer: &Apart{}},
		&Ask{Version: Version, Namespace: dbadapter.NamespaceID{1, 2, 3}, Nonce: Nonce{4}, Proof: Proof{5}, Greeting: greeting, Question: &AskFeed{Message: []byte{1, 2}}},
		&Reply{Nonce: Nonce{6}, Proof: Proof{7}, Greeting: greeting, Subject: SubjectFeed, Answer: &FeedAnswer{Message: []byte{3}}},
		&Reply{Subject: SubjectFeed, Answer: &Apart{}},
		&Ask{Version: Version, Question: &AskChanges{ShardRow: row, Cursor: []byte("start"), Prefix: []byte("k")}},
		&Ask{Version: Version, Question: &AskChanges{Cursor: []byte{}, Prefix: []byte{}}},
		&Reply{Subject: SubjectChanges, Answer: &ChangesAnswer{Whole: true, More: true, Next: []byte("0000000000000005.9"), Changes: []Change{{Coalesced: true, Record: &both}, {Record: &gone}, {Key: []byte("k")}, {Key: []byte{}}}}},
		&Reply{Subject: SubjectChanges, Answer: &ChangesAnswer{Whole: true, Expired: true}},
		&Reply{Subject: SubjectChanges, Answer: &ChangesAnswer{}},
		&Reply{Subject: SubjectChanges, Answer: &Apart{}},
		&Ask{Version: Version, Question: &AskKept{Aside: true, After: 5<<40 | 7}},
		&Reply{Subject: SubjectKept, Answer: &KeptAnswer{More: true, Entries: []KeptEntry{{Seq: 5<<40 | 8, At: 9, Size: 10, Record: bothOffered, By: version}, {Seq: 1, Record: dbadapter.Record{Key: []byte("k"), Version: version, Deleted: true}}}}},
		&Reply{Subject: SubjectKept, Answer: &KeptAnswer{}},
		&Ask{Version: Version, Question: &AskHold{ShardRow: row, Passed: true, Records: []dbadapter.Record{both}}},
		&Ask{Version: Version, Question: &AskBody{ShardRow: row, Key: []byte("k")}},
		&Reply{Subject: SubjectBody, Answer: &BodyAnswer{Whole: true, Record: &both, Value: []byte("a value")}},
		&Reply{Subject: SubjectBody, Answer: &BodyAnswer{Record: &gone, Value: []byte{}}},
		&Reply{Subject: SubjectBody, Answer: &Apart{}},
		&Ask{Version: Version, Question: &AskNames{ShardRow: row, Names: []BodyName{{Salt: [16]byte{1, 2}, Key: []byte("k")}, {Key: []byte("k2")}}}},
		&Reply{Subject: SubjectNames, Answer: &NamesAnswer{Named: []bool{true, false}}},
		&Reply{Subject: SubjectNames, Answer: &Apart{}},
		&Marks{Marks: []Mark{{1, 2}, {1 << 41, 1<<64 - 1}}},
		&Heads{Count: MaxHeads},
		&Offers{Offers: []Offer{{Record: bothOffered, Hashed: true, Hash: [32]byte{2}}, {Record: bothWithheld}}},
		&Records{Records: []Sent{{Record: fleeting}, {Record: replacing}, {Record: both}, {Record: fleetingDated}, {Record: bothOffered, Stub: true}, {Record: bothWithheld, Withheld: true, Why: ReasonWriter, Digest: dbadapter.Digest{4, 3, 2, 1}}}},
	}
}

func TestGoldenVectors(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# One frame of each kind: its fields, and its bytes. Arrays and byte strings are in hexadecimal as they travel, digests are
# numbers with the most significant digit first, other numbers are decimal, but for clock, writer and incarnation. A field
# that is left out is 0, false or empty. docs/protocol, "Frames", has the layout.
`)
	for _, m := range samples() {
		fmt.Fprintf(&b, "%s%s\n  %s\n", strings.TrimPrefix(fmt.Sprintf("%T", m), "*wire."), fields(reflect.ValueOf(m).Elem()), hex.EncodeToString(Append(nil, m)))
	}
	golden.Compare(t, "testdata/vectors.txt", b.String())
}

// fields are those of a message that are not zero, as a reader of the vectors
// needs them.
func fields(v reflect.Value) string {
	var b strings.Builder
	for n := range v.NumField() {
		if f := v.Field(n); !f.IsZero() {
			fmt.Fprintf(&b, " %s=%s", strings.ToLower(v.Type().Field(n).Name), value(f))
		}
	}
	return b.String()
}

func value(f reflect.Value) string {
	switch x := f.Interface().(type) {
	case dbadapter.Digest:
		return fmt.Sprintf("%016x%016x%016x%016x", x[3], x[2], x[1], x[0])
	case dbadapter.Version:
		return x.String()
	case dbadapter.WriterID:
		return x.String()
	case *dbadapter.Version:
		if x == nil {
			return "none"
		}
		return x.String()
	case fmt.Stringer: // a direction, method or reason
		return fmt.Sprintf("%d (%s)", x, x)
	case string:
		return fmt.Sprintf("%q", x)
	case *dbadapter.Record:
		return value(f.Elem())
	}
	switch {
	case f.Kind() == reflect.Interface: // a question, an answer
		return value(f.Elem().Elem())
	case f.Kind() == reflect.Struct:
		return "{" + strings.TrimSpace(fields(f)) + "}"
	case (f.Kind() == reflect.Slice || f.Kind() == reflect.Array) && f.Type().Elem().Kind() == reflect.Uint8:
		return fmt.Sprintf("%x", f.Interface())
	case f.Kind() == reflect.Slice:
		var all []string
		for n := range f.Len() {
			all = append(all, value(f.Index(n)))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprint(f.Interface())
}

func TestReadsWhatItWrites(t *testing.T) {
	var stream []byte
	for _, m := range samples() {
		stream = Append(stream, m)
	}
	r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(stream)))
	total := 0
	for _, want := range samples() {
		m, n, err := Read(r)
		if err != nil {
			t.Fatalf("%T: %v", want, err)
		}
		if size := len(Append(nil, want)); n != size {
			t.Errorf("%T: read %d bytes of %d", want, n, size)
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("read %+v, not %+v", m, want)
		}
		total += n
	}
	if _, _, err := Read(r); !errors.Is(err, io.EOF) || total != len(stream) {
		t.Errorf("at the end: %v after %d of %d bytes", err, total, len(stream))
	}
}

func TestRefuses(t *testing.T) {
	body := func(k Kind, b ...byte) []byte { return append([]byte{byte(k)}, b...) }
	many := func(b []byte, n int) []byte { return bytes.Repeat(b, n) }
	record := []byte{0, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0, 0}
	long := Append(nil, &Reply{Subject: SubjectKey, Answer: &KeyAnswer{
		Held: dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: 1}}, Declined: ReasonClock, Rest: MaxRest + 1,
	}})
	for name, frame := range map[string][]byte{
		"nothing":                   {},
		"kind 0":                    body(0),
		"kind 14":                   body(14),
		"trailing byte":             body(KindSame, 0),
		"no cells":                  body(KindCells, 0),
		"no indices":                body(KindIndices, 1),
		"no offers":                 body(KindOffers, 0),
		"no records":                body(KindRecords),
		"too many offers":           body(KindOffers, append([]byte{0}, many(record[:11], MaxOffers+1)...)...),
		"too many refusals":         body(KindEnd, append([]byte{0, 0, 0}, many([]byte{1, 1, 2}, MaxRefusals+1)...)...),
		"no heads":                  body(KindHeads, 0),
		"too many heads":            body(KindHeads, 0x81, 0x10),
		"long number":               body(KindMore, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
		"number not in short form":  body(KindMore, 0x80, 0x00),
		"role 0":                    body(KindIndices, 0, 1),
		"role 6":                    body(KindIndices, 6, 1),
		"index twice":               body(KindIndices, 1, 1, 0),
		"index 0":                   body(KindIndices, 1, 0),
		"index over the field":      body(KindIndices, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"too many indices":          body(KindIndices, append([]byte{1}, many([]byte{1}, MaxIndices+1)...)...),
		"cell cut":                  body(KindCells, 0, 1, 2, 3),
		"cell out of the field":     body(KindCells, append([]byte{0}, many([]byte{0xff}, 16)...)...),
		"too many cells":            body(KindCells, make([]byte, 1+16*(MaxCells+1))...),
		"estimator too long":        body(KindCells, append([]byte{0x81, 0x02}, make([]byte, 257+16)...)...),
		"an estimator, no cells":    body(KindCells, 1, 7),
		"method 0":                  body(KindResult, make([]byte, 35)...),
		"flag 2":                    body(KindAnswer, append([]byte{2}, make([]byte, 32)...)...),
		"empty key":                 body(KindRecords, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"long key":                  body(KindRecords, 0, 0x81, 0x08),
		"unknown record flag":       body(KindRecords, 1<<7, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"withheld offer":            body(KindOffers, append([]byte{0, 16}, record[1:11]...)...),
		"withheld stub":             body(KindRecords, append(append([]byte{20}, record[1:11]...), make([]byte, 33)...)...),
		"withheld without a reason": body(KindRecords, append(append([]byte{16}, record[1:11]...), make([]byte, 33)...)...),
		"withheld without a digest": body(KindRecords, append(append([]byte{16}, record[1:11]...), 2)...),
		"stub of a tombstone":       body(KindRecords, 5, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0),
		"writer of zeros":           body(KindRecords, append([]byte{8, 1, 'k'}, make([]byte, 25)...)...),
		"expiry cut":                body(KindRecords, append([]byte{32}, record[1:11]...)...),
		"expiry of 0":               body(KindRecords, append(append([]byte{32}, record[1:11]...), make([]byte, 9)...)...),
		"tombstone that expires":    body(KindRecords, append(append([]byte{33}, record[1:11]...), 0, 0, 0, 0, 0, 1, 0, 0)...),
		"replaces nothing":          body(KindRecords, append(append([]byte{72, 1, 'k'}, many([]byte{9}, 24)...), 0, 0)...),
		"dated and replaces":        body(KindRecords, append(append([]byte{64, 1, 'k'}, many([]byte{9}, 8)...), append(append([]byte{1}, many([]byte{1}, 16)...), 0)...)...),
		"replaces nine":             body(KindRecords, append(append([]byte{72, 1, 'k'}, many([]byte{9}, 24)...), append([]byte{9}, many([]byte{1}, 200)...)...)...),
		"replaces twice":            body(KindRecords, append(append([]byte{72, 1, 'k'}, many([]byte{9}, 24)...), append([]byte{2}, many([]byte{1}, 33)...)...)...),
		"value longer than frame":   body(KindRecords, 0, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0, 9),
		"too many records":          body(KindRecords, many(record, BatchRecords+1)...),
		"refusal of index 0":        body(KindEnd, 0, 0, 0, 0, 1, 2),
		"refusal without a reason":  body(KindEnd, 0, 0, 0, 1, 1, 0),
		"refusal of unknown reason": body(KindEnd, 0, 0, 0, 1, 1, 7),
		"text that is not UTF-8":    body(KindRefuse, 1, 1, 0, 0xff),
		"text too long":             body(KindRefuse, append([]byte{1, 1, 0}, many([]byte{'x'}, MaxText+1)...)...),
		"removed, no statement":     body(KindRefuse, 8, 1, 0),
		"statement of a stranger":   body(KindRefuse, 1, 1, 1, 1, 's'),
		"statement too long":        body(KindRefuse, append([]byte{8, 1, 1, 0x81, 0x20}, many([]byte{'s'}, MaxStatement+1)...)...),
		"statement cut":             body(KindRefuse, 8, 1, 1, 2, 's'),
		"statement empty":           body(KindRefuse, 8, 1, 2, 1, 's', 0),
		"statement missing":         body(KindRefuse, 8, 1, 2, 1, 's'),
		"too many statements":       body(KindRefuse, append([]byte{8, 1, MaxStatements + 1}, many([]byte{1, 's'}, MaxStatements+1)...)...),
		"kind 21":                   body(21),
		"patience too long":         body(KindAsk, slices.Concat([]byte{Version}, make([]byte, 16+16+32+GreetingSize), []byte{0xb1, 0xea, 0x01, byte(SubjectSet)}, make([]byte, 33))...),
		"a question about 0":        body(KindAsk, slices.Concat([]byte{Version}, make([]byte, 16+16+32+GreetingSize), []byte{0, 0}, make([]byte, 33))...),
		"flags of no record":        body(KindAsk, slices.Concat([]byte{Version}, make([]byte, 16+16+32+GreetingSize), []byte{0, byte(SubjectKey)}, []byte{1}, record[1:11])...),
		"a question without a key":  body(KindAsk, slices.Concat([]byte{Version}, make([]byte, 16+16+32+GreetingSize), []byte{0, byte(SubjectKey)}, make([]byte, 10))...),
		"a question cut":            body(KindAsk, slices.Concat([]byte{Version}, make([]byte, 16+16+32+GreetingSize), []byte{0, byte(SubjectKey)}, record[:10])...),
		"an answer about 0":         body(KindReply, make([]byte, 16+32+GreetingSize+1+33)...),
		"an unknown reason":         body(KindReply, slices.Concat(make([]byte, 16+32+GreetingSize), []byte{byte(SubjectKey), 8})...),
		"a rest that is too long":   long[sizeOfLength(long):],
		"held without a version":    body(KindReply, slices.Concat(make([]byte, 16+32+GreetingSize), []byte{byte(SubjectKey), 0}, record[:11])...),
		"a greeting cut":            body(KindWelcome, make([]byte, 16+32+1+32+GreetingSize-1)...),
	} {
		if m, err := Parse(frame); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, stream := range map[string][]byte{
		"length 0":         {0},
		"length over":      {0xff, 0xff, 0xff, 0x7f},
		"length of 2^63":   {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
		"length not short": {0x81, 0x00, 3},
	} {
		if _, _, err := Read(bytes.NewReader(stream)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A length that announces a full frame buys no more memory than has come.
func TestAnnouncedLengthBuysNoMemory(t *testing.T) {
	head := []byte{0x80, 0x80, 0x40} // 2^20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 100
	for range times {
		if _, _, err := Read(bytes.NewReader(append(head, 1, 2, 3))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / times; n > 4*readStep {
		t.Errorf("%d bytes allocated for a frame of which 3 bytes came", n)
	}
}

// FuzzParse: no input panics, and what is accepted encodes alike.
func FuzzParse(f *testing.F) {
	for _, m := range samples() {
		frame := Append(nil, m)
		f.Add(frame[sizeOfLength(frame):])
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := Parse(frame)
		if err != nil {
			return
		}
		if h, ok := m.(*Hello); ok && h.Version != Version {
			return // what follows an unknown version is not read
		}
		if a, ok := m.(*Ask); ok && a.Version != Version {
			return
		}
		again := Append(nil, m)
		if again = again[sizeOfLength(again):]; !bytes.Equal(again, frame) {
			t.Fatalf("%x was read as %+v, which is %x", frame, m, again)
		}
	})
}

// FuzzRead: no stream panics or is read beyond its frame.
func FuzzRead(f *testing.F) {
	for _, m := range samples() {
		f.Add(Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		_, n, err := Read(r)
		if err == nil && n != len(stream)-r.Len() {
			t.Fatalf("%d bytes read, %d counted", len(stream)-r.Len(), n)
		}
	})
}

func sizeOfLength(frame []byte) int {
	n := 1
	for frame[n-1]&0x80 != 0 {
		n++
	}
	return n
}
