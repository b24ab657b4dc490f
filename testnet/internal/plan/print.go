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
	for _, l := range p.Prose {
		b.WriteString(strings.TrimRight("# "+l, " ") + "\n")
	}
	for _, f := range settings(p) {
		if text, there := f.print(); there && f.name != settle {
			b.WriteString(strings.TrimRight(f.name+" "+text, " ") + "\n")
		}
	}
	if len(p.Events) > 0 {
		b.WriteString("\n")
	}
	for i := range p.Events {
		b.WriteString(p.Events[i].String() + "\n")
	}
	fmt.Fprintf(&b, "\nsettle %s\n", span(p.Settle))
	b.WriteString(p.Expect.String())
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
