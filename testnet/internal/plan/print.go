package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String is the plan as text, in its canonical form. Settings stand in their usual
// order, one space between words, and each number in its shortest form. Parse reads it
// back.
func (p *Plan) String() string {
	var b strings.Builder
	comment(&b, p.Prose)
	if p.Name != "" {
		fmt.Fprintf(&b, "name %s\n", p.Name)
	}
	fmt.Fprintf(&b, "nodes %d\nseed %d\n", p.Nodes, p.Seed)
	if p.Net != (Net{}) {
		fmt.Fprintf(&b, "net%s\n", p.Net)
	}
	if p.Every != 0 {
		fmt.Fprintf(&b, "every %s\n", span(p.Every))
	}
	fmt.Fprintf(&b, "skew %s\n", span(p.Skew))
	if p.Checksums != 0 {
		fmt.Fprintf(&b, "checksums %d\n", p.Checksums)
	}
	if p.Indices != 0 {
		fmt.Fprintf(&b, "indices %d\n", p.Indices)
	}
	if p.Ground != "" {
		fmt.Fprintf(&b, "ground %s\n", p.Ground)
	}
	if p.Log != 0 {
		fmt.Fprintf(&b, "log %d\n", p.Log)
	}
	if p.Shards != 0 {
		b.WriteString(p.printShards() + "\n")
	}
	if p.Signed {
		b.WriteString("signed\n")
	}
	if p.Push {
		b.WriteString("push\n")
	}
	if p.Alone {
		b.WriteString("alone\n")
	}
	if len(p.Events) > 0 {
		b.WriteString("\n")
	}
	for i := range p.Events {
		e := &p.Events[i]
		if e.Note != "" {
			if i > 0 {
				b.WriteString("\n")
			}
			comment(&b, strings.Split(e.Note, "\n"))
		}
		b.WriteString(e.String())
		b.WriteString("\n")
	}
	b.WriteString("\n")
	comment(&b, p.Closing)
	fmt.Fprintf(&b, "settle %s\n", span(p.Settle))
	b.WriteString(p.Expect.String())
	return b.String()
}

func comment(b *strings.Builder, lines []string) {
	for _, l := range lines {
		b.WriteString(strings.TrimRight("# "+l, " "))
		b.WriteString("\n")
	}
}

// String is what follows the word net, with a space before each part.
func (n Net) String() string {
	var b strings.Builder
	for _, f := range netFields(&n) {
		switch v := f.value.(type) {
		case *time.Duration:
			if *v != 0 {
				fmt.Fprintf(&b, " %s=%s", f.name, span(*v))
			}
		case *float64:
			if *v != 0 {
				fmt.Fprintf(&b, " %s=%s", f.name, share(*v))
			}
		}
	}
	return b.String()
}

// String is the lines of an expectation.
func (e Expect) String() string {
	var b strings.Builder
	if e.Violation == "" {
		b.WriteString("expect converged\n")
	} else {
		fmt.Fprintf(&b, "expect violation %s\n", e.Violation)
	}
	for _, n := range e.Corrupt {
		fmt.Fprintf(&b, "expect corrupt %d\n", n)
	}
	for _, c := range e.Causes {
		fmt.Fprintf(&b, "expect cause %s\n", c)
	}
	for _, r := range e.Refused {
		fmt.Fprintf(&b, "expect refused %s\n", r)
	}
	return b.String()
}

// String is the line of an event, without its note.
func (e *Event) String() string {
	line := "at " + span(e.At) + " " + e.Verb.String()
	if e.Verb == 0 || e.Verb >= verbs {
		return line
	}
	switch verbTable[e.Verb].form {
	case formNone:
	case formNode:
		line += fmt.Sprintf(" %d", e.Node)
	case formFor:
		line += fmt.Sprintf(" %d for %s", e.Node, span(e.For))
	case formLink:
		line += fmt.Sprintf(" %d>%d", e.Node, e.Peer)
	case formLinkFor:
		line += fmt.Sprintf(" %d>%d for %s", e.Node, e.Peer, span(e.For))
	case formKeyFor:
		line += fmt.Sprintf(" %d %s %d for %s", e.Node, e.Key, e.Amount, span(e.For))
	case formJoin, formMember:
		line += strings.TrimRight(fmt.Sprintf(" %d>%d %s", e.Node, e.Peer, e.Key), " ")
	case formPrefix, formRole:
		line += fmt.Sprintf(" %d>%d %s", e.Node, e.Peer, e.Key)
	case formTerm:
		line += fmt.Sprintf(" %d>%d %s for %s", e.Node, e.Peer, e.Key, span(e.For))
	case formLoss:
		line += fmt.Sprintf(" %d>%d %s", e.Node, e.Peer, share(float64(e.Amount)/1000))
	case formPut:
		line += fmt.Sprintf(" %d %s %s", e.Node, e.Key, e.value())
	case formPutFor, formPutBy:
		line += fmt.Sprintf(" %d %s %s %s %s", e.Node, e.Key, e.value(), verbTable[e.Verb].form.span(), span(e.For))
	case formDel:
		line += fmt.Sprintf(" %d %s", e.Node, e.Key)
	case formBatch:
		line += fmt.Sprintf(" %d %s %d %s", e.Node, e.Key, e.Amount, size(e.Size))
	case formStep:
		line += fmt.Sprintf(" %d %s", e.Node, e.Step)
	case formSkew:
		line += fmt.Sprintf(" %d %s", e.Node, skew(e.Amount))
	case formGroups:
		line += " " + e.Key
	case formFlip:
		line += fmt.Sprintf(" %d %d", e.Node, e.Amount)
	case formWatch:
		line += fmt.Sprintf(" %d %s%s", e.Node, e.Key, e.Watching)
	case formRandom:
		line += e.Random.String() + " for " + span(e.For)
	}
	line += e.level()
	if e.Finding != "" {
		line += " expect " + string(e.Finding)
	}
	return line
}

// value is the value, or its size.
func (e *Event) value() string {
	if e.Value != "" {
		return strconv.Quote(e.Value)
	}
	return size(e.Size)
}

// String is the parts of a random line, with a space before each.
func (r Random) String() string {
	var b strings.Builder
	for _, f := range randomFields(&r) {
		switch {
		case *f.value == 0:
		case f.name == "size":
			fmt.Fprintf(&b, " %s=%s", f.name, size(*f.value))
		default:
			fmt.Fprintf(&b, " %s=%d", f.name, *f.value)
		}
	}
	if r.Profile != "" {
		fmt.Fprintf(&b, " profile=%s", r.Profile)
	}
	return b.String()
}

// span is a duration without the zeros that time.Duration ends in.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// skew is a signed duration of so many milliseconds.
func skew(ms int64) string {
	s := span(time.Duration(ms) * time.Millisecond)
	if ms >= 0 {
		s = "+" + s
	}
	return s
}

func share(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// size is a number of bytes in the largest unit that divides it.
func size(n int) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.Itoa(n/u.bytes) + u.name
		}
	}
	return "0B"
}

var units = []struct {
	name  string
	bytes int
}{{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
