package jsonlines

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// byteOrderMark is what some editors put before UTF-8.
var byteOrderMark = []byte("\uFEFF")

// parser reads lines one after the other.
type parser struct{ dec jsontext.Decoder }

// seen says which fields the line has given so far.
type seen struct{ key, value, time, expires bool }

// parse reads one line. The entry shares no memory with the line. Every
// error is about the line's form; whether a key or value is too long, the
// store decides.
func (p *parser) parse(line []byte) (Entry, error) {
	var e Entry
	switch {
	case bytes.HasPrefix(line, byteOrderMark):
		return e, errors.New("the line begins with a byte order mark, which JSON does not have; save the file as UTF-8 without one")
	case !utf8.Valid(line):
		return e, errors.New("the line is not UTF-8; give other bytes as base64, in key64 or value64")
	}
	// field finds doubled names itself, since a key and a key64 count as the same.
	p.dec.Reset(bytes.NewBuffer(line), jsontext.AllowDuplicateNames(true))
	if begin, err := p.dec.ReadToken(); err != nil || begin.Kind() != jsontext.KindBeginObject {
		return e, errors.New(`want a JSON object such as {"key":"a","value":"one"}`)
	}
	var have seen
	for p.dec.PeekKind() != jsontext.KindEndObject {
		name, err := p.text("a field's name")
		if err != nil {
			return Entry{}, err
		}
		if err := p.field(&e, &have, string(name)); err != nil {
			return Entry{}, err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return Entry{}, notJSON(err)
	}
	switch _, err := p.dec.ReadToken(); {
	case !errors.Is(err, io.EOF):
		return Entry{}, errors.New("something stands after the object; one object a line")
	case !have.key:
		return Entry{}, errors.New("the record has no key")
	case !have.value:
		return Entry{}, errors.New("the record has no value")
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
		return p.time(&e.Time, &have.time, name)
	case "expires":
		return p.time(&e.Expires, &have.expires, name)
	case "version":
		return errors.New(`the field "version" cannot be imported: a version belongs to the node that made it; export without --versions`)
	case "deleted":
		return errors.New(`the field "deleted" cannot be imported: an import deletes nothing; export without --versions, or delete the key with syncd del`)
	}
	return fmt.Errorf("unknown field %q; a record has key or key64, value or value64, and perhaps time and expires", name)
}

// time reads the field of a time.
func (p *parser) time(to *time.Time, have *bool, name string) error {
	if *have {
		return fmt.Errorf("the field %q stands twice", name)
	}
	*have = true
	text, err := p.text(fmt.Sprintf("the value of %q", name))
	if err != nil {
		return err
	}
	*to, err = parseTime(string(text))
	return err
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

// text reads a JSON string and returns its bytes, valid UTF-8.
func (p *parser) text(what string) ([]byte, error) {
	if kind := p.dec.PeekKind(); kind != jsontext.KindString && kind != jsontext.KindInvalid {
		return nil, fmt.Errorf("want a string as %s", what)
	}
	quoted, err := p.dec.ReadValue()
	if err != nil {
		return nil, notJSON(err)
	}
	return jsontext.AppendUnquote(make([]byte, 0, len(quoted)), quoted)
}

// notJSON tells what is wrong with a line, and where.
func notJSON(err error) error {
	var at *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the line ends within the object")
	case errors.As(err, &at):
		return fmt.Errorf("the line is not JSON at byte %d: %w", at.ByteOffset+1, at.Err)
	}
	return err
}
