package jsonlines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCanonicalForm(t *testing.T) {
	at := time.Date(2024, 3, 1, 13, 0, 0, 5e6, time.FixedZone("", 3600))
	for _, c := range []struct {
		e    Entry
		want string
	}{
		{Entry{Key: []byte("a"), Value: []byte("one")}, `{"key":"a","value":"one"}`},
		{Entry{Key: []byte("a"), Value: nil}, `{"key":"a","value":""}`},
		{Entry{Key: []byte("\xff"), Value: []byte{0, 1}}, `{"key64":"/w==","value":"\u0000\u0001"}`},
		{Entry{Key: []byte("a/../b <&>"), Value: []byte("\"\\\n\r\t\x7fé\u2028")}, `{"key":"a/../b <&>","value":"\"\\\n\r\t` + "\x7fé\u2028" + `"}`},
		{Entry{Key: []byte("a"), Value: []byte("v"), Time: at}, `{"key":"a","value":"v","time":"2024-03-01T12:00:00.005Z"}`},
		{Entry{Key: []byte("a"), Value: []byte("v"), Time: at, Expires: at.Add(time.Hour)}, `{"key":"a","value":"v","time":"2024-03-01T12:00:00.005Z","expires":"2024-03-01T13:00:00.005Z"}`},
		{Entry{Key: []byte("a"), Value: []byte("v"), Expires: at, Version: "1-2-3"}, `{"key":"a","value":"v","expires":"2024-03-01T12:00:00.005Z","version":"1-2-3"}`},
		{Entry{Key: []byte("a"), Value: []byte("v"), Version: "1-2-3"}, `{"key":"a","value":"v","version":"1-2-3"}`},
		{Entry{Key: []byte("a"), Version: "1-2-3", Deleted: true}, `{"key":"a","version":"1-2-3","deleted":true}`},
	} {
		if got := string(Append(nil, &c.e)); got != c.want+"\n" {
			t.Errorf("Append(%+v) = %s; want %s", c.e, got, c.want)
		}
	}
}

// Parse reads one line by itself.
func Parse(line []byte) (Entry, error) { return new(parser).parse(line) }

func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		``:                                       "want a JSON object",
		`[]`:                                     "want a JSON object",
		`{}`:                                     "has no key",
		`{"key":"a"}`:                            "has no value",
		`{"value":"a"}`:                          "has no key",
		`{"key":"a","value":"b"`:                 "the line ends within the object",
		`{"key":"a","value":"b",}`:               "invalid character ','",
		`{"key":"a" "value":"b"}`:                "expecting ','",
		`{"key":"a","value":"b"} x`:              "something stands after",
		`{"key":"a","value":1}`:                  `want a string as the value of "value"`,
		`{"key":"a","value":null}`:               `want a string as the value of "value"`,
		`{"key":"a","value":"b","vlaue":1}`:      `unknown field "vlaue"`,
		`{"key":"a","key":"a","value":"b"}`:      "the key stands twice",
		`{"key":"a","key64":"YQ==","value":"b"}`: "the key stands twice",
		`{"key":"a","value64":"YQ==","value":"b"}`:                                                  "the value stands twice",
		`{"key64":"YQ","value":"b"}`:                                                                "not base64 with padding",
		`{"key64":"YR==","value":"b"}`:                                                              "not base64 with padding",
		`{"key":"a","value":"b","time":"yesterday"}`:                                                "must be RFC 3339",
		`{"key":"a","value":"b","time":"0001-01-01T00:00:00Z"}`:                                     "must be RFC 3339",
		`{"key":"a","value":"b","time":"2024-03-01t12:00:00z"}`:                                     "with a capital T and Z",
		`{"key":"a","value":"b","time":"2016-12-31T23:59:60Z"}`:                                     "no leap second",
		`{"key":"a","value":"b","time":"2024-03-01T12:00:00,5Z"}`:                                   "must be RFC 3339",
		`{"key":"a","value":"b","expires":"tomorrow"}`:                                              "must be RFC 3339",
		`{"key":"a","value":"b","expires":"2027-03-01T12:00:00Z","expires":"2027-03-01T12:00:00Z"}`: `the field "expires" stands twice`,
		"\uFEFF" + `{"key":"a","value":"b"}`:                                                        "byte order mark",
		`{"key":"a","value":"b","deleted":true}`:                                                    "an import deletes nothing",
		`{"key":"a","value":"b","version":"1"}`:                                                     "cannot be imported",
		"{\"key\":\"\xff\",\"value\":\"b\"}":                                                        "is not UTF-8",
		"{\"key\":\"a\x01\",\"value\":\"b\"}":                                                       "at byte 10: invalid character",
		`{"key":"\ud800","value":"b"}`:                                                              "invalid surrogate pair",
		`{"key":"\ud800\u0041","value":"b"}`:                                                        "invalid surrogate pair",
		`{"key":"\u12","value":"b"}`:                                                                "invalid escape sequence",
		`{"key":"\x41","value":"b"}`:                                                                "invalid escape sequence",
		`{"key":"a`:                                                                                 "the line ends within",
		`{"value":1,"value":2,"key":"a"}`:                                                           "want a string",
		`{"key":"a","value":"b"}{}`:                                                                 "something stands after",
	} {
		if _, err := Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): error %v; want one about %q", line, err, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Key:   rapid.SliceOf(rapid.Byte()).Draw(t, "key"),
			Value: rapid.SliceOf(rapid.Byte()).Draw(t, "value"),
		}
		if rapid.Bool().Draw(t, "dated") {
			e.Time = time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "time")).UTC()
		}
		if rapid.Bool().Draw(t, "expires") {
			e.Expires = time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "expiry")).UTC()
		}
		got, err := Parse(Append(nil, &e))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Key, e.Key) || !bytes.Equal(got.Value, e.Value) || !got.Time.Equal(e.Time) || !got.Expires.Equal(e.Expires) {
			t.Fatalf("%+v came back as %+v", e, got)
		}
	})
}

func TestReaderCountsLines(t *testing.T) {
	const text = "{\"key\":\"a\",\"value\":\"1\"}\n\n  \t\r\n{\"key\":\"b\",\"value\":\"2\"}\r\nbad\n"
	r := NewReader(strings.NewReader(text), 10)
	for _, want := range []struct {
		key  string
		line int
	}{{"a", 10}, {"b", 13}} {
		e, err := r.Next()
		if err != nil || string(e.Key) != want.key || r.Line() != want.line {
			t.Fatalf("got %q on line %d, %v; want %+v", e.Key, r.Line(), err, want)
		}
	}
	_, err := r.Next()
	var at *LineError
	if !errors.As(err, &at) || at.Line != 14 {
		t.Fatalf("error %v; want one about line 14", err)
	}
	if _, err := NewReader(strings.NewReader(""), 1).Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("error %v; want io.EOF", err)
	}
}

func TestReaderBoundsLines(t *testing.T) {
	long := `{"key":"a","value":"` + strings.Repeat("x", MaxLine) + `"}` + "\n"
	_, err := NewReader(strings.NewReader(long), 1).Next()
	var at *LineError
	if !errors.As(err, &at) || !errors.Is(err, ErrLong) || at.Line != 1 {
		t.Fatalf("error %v; want ErrLong on line 1", err)
	}
	// The largest record there is, every byte of it escaped, still fits.
	e := Entry{Key: make([]byte, 1<<10), Value: make([]byte, 1<<20)}
	line := Append(nil, &e)
	got, err := NewReader(bytes.NewReader(line[:len(line)-1]), 1).Next()
	if err != nil || len(got.Value) != 1<<20 {
		t.Fatalf("the largest record: %v", err)
	}
}

// twin is what encoding/json makes of the line.
type twin struct {
	Key     *string `json:"key"`
	Key64   []byte  `json:"key64"`
	Value   *string `json:"value"`
	Value64 []byte  `json:"value64"`
	Time    string  `json:"time"`
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"key":"a","value":"one"}`))
	f.Add([]byte(`{"key64":"/w==","value64":"AAE=","time":"2024-03-01T12:00:00Z"}`))
	f.Add([]byte(` { "key" : "\u00e9\ud83d\ude00\n" , "value" : "" } `))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			return
		}
		var w twin
		if err := json.Unmarshal(line, &w); err != nil {
			t.Fatalf("Parse took %q, encoding/json did not: %v", line, err)
		}
		compare(t, "key", e.Key, w.Key, w.Key64)
		compare(t, "value", e.Value, w.Value, w.Value64)
		again, err := Parse(Append(nil, &e))
		if err != nil || !bytes.Equal(again.Key, e.Key) || !bytes.Equal(again.Value, e.Value) || !again.Time.Equal(e.Time) {
			t.Fatalf("%q re-encodes as %q: %v", line, Append(nil, &e), err)
		}
	})
}

func compare(t *testing.T, what string, got []byte, text *string, raw []byte) {
	t.Helper()
	want := raw
	if text != nil {
		want = []byte(*text)
		if !utf8.Valid(got) {
			t.Fatalf("the %s %q is not UTF-8", what, got)
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the %s is %q, with encoding/json %q", what, got, want)
	}
}
