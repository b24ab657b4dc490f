package main

import (
	"fmt"
	"io"
	"strings"
)

// bar is a line on a terminal that tells how far an experiment is.
type bar struct {
	out   io.Writer
	on    bool
	drawn int
}

// start returns the function that draws the bar of one experiment, or nil if
// there is no terminal.
func (b *bar) start(s setting, trials int) func(done int) {
	if !b.on {
		return nil
	}
	b.drawn = -1
	return func(done int) {
		const full = 30
		at := done * full / trials
		if at == b.drawn {
			return
		}
		b.drawn = at
		fmt.Fprintf(b.out, "\r%6d keys %6d cells %5d with two values [%s%s] %d/%d\x1b[K", s.keys, s.cells, s.multi,
			strings.Repeat("█", at), strings.Repeat("·", full-at), done, trials)
	}
}

// clear removes the line.
func (b *bar) clear() {
	if b.on {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
