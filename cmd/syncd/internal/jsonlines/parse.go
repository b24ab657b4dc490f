package jsonlines

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads one line. The entry shares no memory with the line. Every
// error is about the line's form; whether a key or value is too long, the
// store decides.
func Parse(line []byte) (Entry, error) {
	p := parser{rest: line}
	e, err := p.object()
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// byteOrderMark is what some editors put before UTF-8.
var byteOrderMark = []byte("\uFEFF")

type parser struct{ rest []byte }

// seen says which fields the line has given so far.
type seen struct{ key, value, time bool }

func (p *parser) object() (Entry, error) {
	var e Entry
	var have seen
	if bytes.HasPrefix(p.rest, byteOrderMark) {
		return e, errors.New("the line begins with a byte order mark, which JSON does not have; save the file as UTF-8 without one")
	}
	if !p.take('{') {
		return e, errors.New(`want a JSON object such as {"key":"a","value":"one"}`)
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return e, errors.New("want a comma or the end of the object")
		}
		name, err := p.text("a field's name")
		if err != nil {
			return e, err
		}
		if !p.take(':') {
			return e, fmt.Errorf("want a colon after %q", name)
		}
		if err := p.field(&e, &have, string(name)); err != nil {
			return e, err
		}
	}
	p.space()
	switch {
	case len(p.rest) > 0:
		return e, errors.New("something stands after the object; one object a line")
	case !have.key:
		return e, errors.New("the record has no key")
	case !have.value:
		return e, errors.New("the record has no value")
	}
	return e, nil
}

func (p *parser) field(e *Entry, have *seen, name string) error {
	switch name {
	case "key", "key64":
		return p.bytes(&e.Key, &have.key, name, "key")
	case "value", "value64":
		return p.bytes(&e.Value, &have.value, name, "value")
	case "time":
		if have.time {
			return errors.New("the time stands twice")
		}
		have.time = true
		text, err := p.text(`the value of "time"`)
		if err != nil {
			return err
		}
		e.Time, err = parseTime(string(text))
		return err
	case "version", "deleted":
		return fmt.Errorf("the field %q cannot be imported: a version belongs to the node that made it; export without --versions", name)
	}
	return fmt.Errorf("unknown field %q; a record has key or key64, value or value64, and perhaps time", name)
}

// parseTime reads a time of RFC 3339, but for leap seconds and small letters,
// which package time does not take, and cuts it to the millisecond.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	// Package time takes a comma for the point, as ISO 8601 does.
	if err != nil || t.IsZero() || strings.Contains(text, ",") {
		return time.Time{}, fmt.Errorf("the time %q is not understood; it must be RFC 3339 with a capital T and Z or an offset, and no leap second, such as 2024-03-01T12:00:00Z or 2024-03-01T13:00:00.5+01:00", text)
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

// bytes reads a key or value, given as text or (name ends in 64) as base64.
func (p *parser) bytes(to *[]byte, have *bool, name, what string) error {
	if *have {
		return fmt.Errorf("the %s stands twice", what)
	}
	*have = true
	text, err := p.text(fmt.Sprintf("the value of %q", name))
	if err != nil {
		return err
	}
	if name == what {
		*to = text
		return nil
	}
	*to, err = base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("%q is not base64 with padding: %w", name, err)
	}
	return nil
}

func (p *parser) space() {
	for len(p.rest) > 0 && isSpace(p.rest[0]) {
		p.rest = p.rest[1:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// take skips white space, then c if it comes next.
func (p *parser) take(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// text reads a JSON string and returns its bytes, valid UTF-8.
func (p *parser) text(what string) ([]byte, error) {
	if !p.take('"') {
		return nil, fmt.Errorf("want a string as %s", what)
	}
	out := []byte{}
	for {
		n := 0
		for n < len(p.rest) && p.rest[n] >= ' ' && p.rest[n] != '"' && p.rest[n] != '\\' {
			n++
		}
		out = append(out, p.rest[:n]...)
		p.rest = p.rest[n:]
		if len(p.rest) == 0 {
			return nil, fmt.Errorf("the line ends within %s", what)
		}
		switch c := p.rest[0]; c {
		case '"':
			p.rest = p.rest[1:]
			if !utf8.Valid(out) {
				return nil, fmt.Errorf("%s is not UTF-8; give other bytes as base64, in key64 or value64", what)
			}
			return out, nil
		case '\\':
			var err error
			if out, err = p.escape(out); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the control character %#02x within %s must be escaped", c, what)
		}
	}
}

// escape reads what a backslash begins.
func (p *parser) escape(out []byte) ([]byte, error) {
	if len(p.rest) < 2 {
		return nil, errors.New("the line ends within an escape")
	}
	c := p.rest[1]
	p.rest = p.rest[2:]
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
	default:
		return nil, fmt.Errorf("the escape \\%c does not exist", c)
	}
	r, err := p.hex4()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) {
		if len(p.rest) < 2 || p.rest[0] != '\\' || p.rest[1] != 'u' {
			return nil, fmt.Errorf("the escape \\u%04x is half of a surrogate pair", r)
		}
		p.rest = p.rest[2:]
		low, err := p.hex4()
		if err != nil {
			return nil, err
		}
		pair := utf16.DecodeRune(r, low)
		if pair == utf8.RuneError {
			return nil, fmt.Errorf("the escapes \\u%04x\\u%04x are no surrogate pair", r, low)
		}
		r = pair
	}
	return utf8.AppendRune(out, r), nil
}

func (p *parser) hex4() (rune, error) {
	if len(p.rest) < 4 {
		return 0, errors.New("the line ends within an escape")
	}
	var r rune
	for _, c := range p.rest[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, fmt.Errorf("the escape \\u%q has no four hexadecimal digits", p.rest[:4])
		}
		r = r<<4 | rune(c)
	}
	p.rest = p.rest[4:]
	return r, nil
}
