package jsonlines

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Entry is what one line says.
type Entry struct {
	Key   []byte
	Value []byte
	// Time is the version's time; zero when the line has no time.
	Time time.Time
	// Expires is when the record expires; zero when it does not.
	Expires time.Time
	// Version and Deleted are written by an export with versions; an import
	// refuses them, since a version belongs to the node that made it.
	Version string
	Deleted bool
}

// MaxLine bounds a line, in bytes: a value of 1 MiB whose every byte is
// escaped as \u00XX, a key likewise, and room for the names.
const MaxLine = 6*(1<<20+1<<10) + 1<<10

// Append appends the line of e, its line feed included. A deleted entry has
// no value.
func Append(b []byte, e *Entry) []byte {
	b = append(b, '{')
	b = appendField(b, "key", e.Key)
	if !e.Deleted {
		b = append(b, ',')
		b = appendField(b, "value", e.Value)
	}
	b = appendTime(b, "time", e.Time)
	b = appendTime(b, "expires", e.Expires)
	if e.Version != "" {
		b = append(b, `,"version":`...)
		b = appendString(b, []byte(e.Version))
	}
	if e.Deleted {
		b = append(b, `,"deleted":true`...)
	}
	return append(b, '}', '\n')
}

// appendTime writes a time, if there is one.
func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(t.UTC().AppendFormat(b, time.RFC3339Nano), '"')
}

// appendField writes "name":"text", or "name64":"base64" for other bytes.
func appendField(b []byte, name string, v []byte) []byte {
	b = append(b, '"')
	b = append(b, name...)
	if utf8.Valid(v) {
		return appendString(append(b, `":`...), v)
	}
	b = append(b, `64":"`...)
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, '"')
}

// appendString quotes valid UTF-8, escaping only what JSON demands, in the
// shortest way (RFC 8785).
func appendString(b, s []byte) []byte {
	b, _ = jsontext.AppendQuote(b, s) // fails for other bytes only
	return b
}
