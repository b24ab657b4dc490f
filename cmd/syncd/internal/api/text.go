package api

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Printable is a text on one line that moves no cursor and breaks no header: white space is a space, and
// what else cannot be printed is escaped as in Go. Texts of errors name what other members say.
func Printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsPrint(r) && (r != unicode.ReplacementChar || strings.HasPrefix(s[i:], string(r))):
			b.WriteRune(r)
		case r == unicode.ReplacementChar: // a byte that is not UTF-8
			b.WriteString(escaped(s[i : i+1]))
		default:
			b.WriteString(escaped(string(r)))
		}
	}
	return b.String()
}

func escaped(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

// WriteJSON writes a value as a person reads it, with an indent or on one line.
func WriteJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}
