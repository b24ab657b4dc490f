package wire

import (
	"fmt"
	"slices"
)

// Direction says which way records may travel, seen from the initiator. The
// zero value is both ways.
type Direction byte

// The directions.
const (
	Both Direction = iota
	Pull           // to the initiator only
	Push           // from the initiator only
)

// Method is the way in which differences are found. The zero value leaves the
// choice to the responder.
type Method byte

// The methods.
const (
	MethodAuto Method = iota
	// MethodSketch finds the differences by coded cells.
	MethodSketch
	// MethodAll sends everything: the cheapest where one side is empty.
	MethodAll
	// MethodSame found both digests equal. It stands in reports; no message
	// asks for it.
	MethodSame
	// MethodParts says that the differences are so many that each part of the ranges
	// is a sync of its own. A responder answers so; it is not asked for.
	MethodParts
	// MethodRanges says that the cells did not come to an end: what they told is to
	// be compared by range before any record travels. A responder answers so; it is
	// not asked for, and does not stand in reports.
	MethodRanges
)

var (
	directions = [...]string{Both: "both", Pull: "pull", Push: "push"}
	methods    = [...]string{MethodAuto: "auto", MethodSketch: "sketch", MethodAll: "all", MethodSame: "same", MethodParts: "parts", MethodRanges: "ranges"}
)

// String is the direction's name.
func (d Direction) String() string { return word(directions[:], byte(d)) }

// String is the method's name.
func (m Method) String() string { return word(methods[:], byte(m)) }

// MarshalText is String.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalText is String.
func (m Method) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is ParseDirection.
func (d *Direction) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDirection(string(text))
	return err
}

// UnmarshalText reads any method's name.
func (m *Method) UnmarshalText(text []byte) error {
	n, err := parseWord("method", methods[:], string(text))
	*m = Method(n)
	return err
}

// ParseDirection reads a direction's name; the empty one is Both.
func ParseDirection(s string) (Direction, error) {
	n, err := parseWord("direction", directions[:], s)
	return Direction(n), err
}

// ParseMethod reads the name of a method that can be asked for; the empty one
// is MethodAuto.
func ParseMethod(s string) (Method, error) {
	n, err := parseWord("method", methods[:MethodSame], s)
	return Method(n), err
}

func word(names []string, n byte) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("unknown (%d)", n)
}

func parseWord(what string, names []string, s string) (byte, error) {
	if s == "" {
		return 0, nil
	}
	if n := slices.Index(names, s); n >= 0 {
		return byte(n), nil
	}
	return 0, fmt.Errorf("%s %q: want one of %q", what, s, names)
}
