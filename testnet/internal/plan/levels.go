package plan

import (
	"slices"
	"strconv"

	"github.com/syncd-io/syncd/internal/placement"
)

// The levels of requests in a namespace that is cut into shards. Without one a request asks for Quorum.
const (
	One    = "one"
	Quorum = "quorum"
	All    = "all"
)

// acks reports whether a verb writes at a level, in a namespace of shards.
func (v Verb) acks() bool {
	return v == Put || v == PutIf || v == Del || v == Expiring || v == Dated || v == Batch || v == Import
}

// cutLevel takes the level off the end of a line. It is "ack 2" of what is written, "read one"
// of what is read, and "atleast" of that. The last words of a quoted value end with its quote
// and are no level.
func (e *Event) cutLevel(rest string) string {
	before, last := cutLastWord(rest)
	if e.Verb == Get && last == "atleast" {
		e.AtLeast, rest = true, before
		before, last = cutLastWord(rest)
	}
	before, word := cutLastWord(before)
	n, err := strconv.Atoi(last)
	level := slices.Contains([]string{One, Quorum, All}, last)
	switch {
	case e.Verb.acks() && word == "ack" && (level || err == nil && n >= 1 && n <= placement.MaxReplicas):
		e.Ack = last
	case e.Verb == Get && word == "read" && level:
		e.Read = last
	default:
		return rest
	}
	return before
}

// level is what cutLevel reads, with a space before it.
func (e *Event) level() (line string) {
	if e.Ack != "" {
		line = " ack " + e.Ack
	}
	if e.Read != "" {
		line = " read " + e.Read
	}
	if e.AtLeast {
		line += " atleast"
	}
	return line
}
