package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestRefusesRouted(t *testing.T) {
	asking := func(b ...byte) []byte {
		return slices.Concat([]byte{byte(KindAsk), Version}, make([]byte, 16+16+32+GreetingSize), b)
	}
	answering := func(s Subject, b ...byte) []byte {
		return slices.Concat([]byte{byte(KindReply)}, make([]byte, 16+32+GreetingSize), []byte{byte(s)}, b)
	}
	row := func(shard ...byte) []byte { return append(shard, make([]byte, 16+8)...) }
	about := func(s Subject, b ...byte) []byte { return asking(slices.Concat([]byte{0, byte(s)}, row(0), b)...) }
	record := []byte{0, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 1, 0}
	// The frames that the faults below are made from.
	for name, frame := range map[string][]byte{
		"a question":  about(SubjectRecord, 0, 1, 'k'),
		"a head":      about(SubjectRecord, 1, 1, 'k'),
		"a record":    answering(SubjectRecord, append([]byte{7}, record...)...),
		"on one":      about(SubjectHold, slices.Concat([]byte{4, 1}, make([]byte, dbadapter.VersionSize), record)...),
		"a hold":      about(SubjectHold, append([]byte{1}, record...)...),
		"outcomes":    answering(SubjectHold, 1, 0, byte(ReasonFull)),
		"a scan":      about(SubjectScan, 5, 0, 0),
		"a watch":     about(SubjectChanges, 0, 0),
		"changes":     answering(SubjectChanges, append([]byte{3, 1, 'c', 1, 1, 'k', 0, 0, 2}, record...)...),
		"expired":     answering(SubjectChanges, 7),
		"kept":        asking(0, byte(SubjectKept), 1, 5),
		"entries":     answering(SubjectKept, slices.Concat([]byte{1, 1, 2, 3, 0, 1, 'k'}, make([]byte, 8), make([]byte, dbadapter.VersionSize))...),
		"a body":      about(SubjectBody, 1, 'k'),
		"its value":   answering(SubjectBody, slices.Concat([]byte{7}, record, []byte{1, 'v'})...),
		"names":       about(SubjectNames, append(make([]byte, 16), 1, 'k')...),
		"named":       answering(SubjectNames, 1, 0, 1),
		"named apart": answering(SubjectNames, 0),
		"passed on":   about(SubjectHold, append([]byte{16}, record...)...),
		"a page":      answering(SubjectScan, append([]byte{7}, record...)...),
	} {
		if _, err := Parse(frame); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, frame := range map[string][]byte{
		"a routed question that waits":  asking(slices.Concat([]byte{1, byte(SubjectRecord)}, row(0), []byte{0, 1, 'k'})...),
		"a routed question, no key":     about(SubjectRecord, 0, 0),
		"a row that is cut":             asking(0, byte(SubjectRecord), 0, 1, 2, 3),
		"a shard too high":              asking(slices.Concat([]byte{0, byte(SubjectRecord)}, row(0x80, 0x40), []byte{0, 1, 'k'})...),
		"no records to hold":            about(SubjectHold, 0),
		"too many records to hold":      about(SubjectHold, append([]byte{0}, bytes.Repeat(record, BatchRecords+1)...)...),
		"a stub to hold":                about(SubjectHold, 0, 4, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0),
		"whole, and by another row":     answering(SubjectRecord, 2),
		"a flag of a record answer":     answering(SubjectRecord, 16|1),
		"a record and a head":           answering(SubjectRecord, append([]byte{13}, record...)...),
		"a record that is missing":      answering(SubjectRecord, 5),
		"a head of zeros":               answering(SubjectRecord, append([]byte{9}, make([]byte, dbadapter.VersionSize)...)...),
		"a flag of a hold answer":       answering(SubjectHold, 4|1, 0),
		"no outcomes":                   answering(SubjectHold, 1),
		"too many outcomes":             answering(SubjectHold, append([]byte{1}, make([]byte, BatchRecords+1)...)...),
		"another of version zeros":      answering(SubjectHold, append([]byte{1, 1, 0}, make([]byte, dbadapter.VersionSize)...)...),
		"another with a flag":           answering(SubjectHold, append([]byte{1, 1, 32}, bytes.Repeat([]byte{1}, 40)...)...),
		"another that replaces nothing": answering(SubjectHold, append([]byte{1, 1, 64}, append(bytes.Repeat([]byte{1}, dbadapter.VersionSize), 0)...)...),
		"a flag of a hold":              about(SubjectHold, append([]byte{8}, record...)...),
		"new in a batch":                about(SubjectHold, append([]byte{3}, record...)...),
		"a date of a batch":             about(SubjectHold, append([]byte{10, 0, 0, 0, 0, 0, 1, 0, 0}, record...)...),
		"a date of zeros":               about(SubjectHold, append([]byte{8, 0, 0, 0, 0, 0, 0, 0, 0}, record...)...),
		"a date that is cut":            about(SubjectHold, 8, 0, 0),
		"another that is cut":           answering(SubjectHold, 1, 1, 0, 5),
		"an unknown outcome":            answering(SubjectHold, 1, 8),
		"outcomes by another row":       answering(SubjectHold, 0, 0, 0),
		"a cursor too long":             about(SubjectChanges, append(append([]byte{0xff, 0x7f}, make([]byte, 1<<14-1)...), 0)...),
		"changes without a cursor":      answering(SubjectChanges, 3, 0),
		"changes of a host not whole":   answering(SubjectChanges, 1, 1, 'c'),
		"changes behind what expired":   answering(SubjectChanges, 7, 1, 'c'),
		"a flag of changes":             answering(SubjectChanges, 15, 1, 'c'),
		"a flag of a change":            answering(SubjectChanges, 3, 1, 'c', 4, 1, 'k'),
		"a change that is cut":          answering(SubjectChanges, 3, 1, 'c', 0, 5),
		"kept that waits":               asking(1, byte(SubjectKept), 1, 5),
		"a kind of what is kept":        asking(0, byte(SubjectKept), 2, 5),
		"more entries behind none":      answering(SubjectKept, 1),
		"an entry that is cut":          answering(SubjectKept, 0, 1, 2, 3, 0, 1, 'k'),
		"too many entries":              answering(SubjectKept, append([]byte{0}, bytes.Repeat(slices.Concat([]byte{1, 2, 3, 0, 1, 'k'}, make([]byte, 8), make([]byte, dbadapter.VersionSize)), BatchRecords+1)...)...),
		"passed on as new":              about(SubjectHold, append([]byte{17}, record...)...),
		"no key of a body":              about(SubjectBody, 0),
		"a record without its body":     answering(SubjectBody, append([]byte{7}, record...)...),
		"a flag of a body":              answering(SubjectBody, 9),
		"no names":                      about(SubjectNames),
		"a name that is cut":            about(SubjectNames, make([]byte, 16)...),
		"too many names":                about(SubjectNames, bytes.Repeat(append(make([]byte, 16), 1, 'k'), BatchRecords+1)...),
		"nothing named":                 answering(SubjectNames, 1),
		"named by another row":          answering(SubjectNames, 0, 1),
		"named by a whole host":         answering(SubjectNames, 3, 1),
		"half named":                    answering(SubjectNames, 1, 2),
		"too many named":                answering(SubjectNames, append([]byte{1}, make([]byte, BatchRecords+1)...)...),
		"a page too large":              about(SubjectScan, 0x81, 0x80, 0x20, 0, 0),
		"a page by another row":         answering(SubjectScan, append([]byte{0}, record...)...),
		"a page of a host not whole":    answering(SubjectScan, append([]byte{1}, record...)...),
		"a page that ends nowhere":      answering(SubjectScan, 7),
		"a flag of a page":              answering(SubjectScan, 5),
		"too many records of a page":    answering(SubjectScan, append([]byte{3}, bytes.Repeat(record, BatchRecords+1)...)...),
	} {
		if m, err := Parse(frame); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// A record of the greatest size fits into a question and into an answer.
func TestLargestRecordIsRouted(t *testing.T) {
	r := dbadapter.Record{
		Key: bytes.Repeat([]byte{'k'}, dbadapter.MaxKey), Value: make([]byte, dbadapter.MaxValue), Version: dbadapter.Version{Clock: 9000, Writer: 1 << 40, Incarnation: 1},
		Signature: make([]byte, dbadapter.SignatureSize), Expires: dbadapter.TimestampAt(dbadapter.Timestamp(1 << 60).Time()),
	}
	for i := range dbadapter.MaxReplaces {
		r.Replaces = append(r.Replaces, dbadapter.Replaced{Writer: dbadapter.WriterID(i + 1), Clock: 5})
	}
	for _, m := range []Message{
		&Ask{Version: Version, Question: &AskHold{ShardRow: ShardRow{Shard: MaxShards - 1}, Records: []dbadapter.Record{r}}},
		&Reply{Subject: SubjectRecord, Answer: &RecordAnswer{Whole: true, Record: &r}},
	} {
		if _, _, err := Read(bytes.NewReader(Append(nil, m))); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}
