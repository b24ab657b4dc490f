package main

import (
	"fmt"
	"io"
	"strings"
)

// bar is a line on a terminal that tells how far an experiment is.
type bar struct {
	out         io.Writer
	on          bool
	name        string
	done, total int
	drawn       int
}

// start begins an experiment, and returns the function that ends it.
func (b *bar) start(name string, total int) (end func()) {
	b.name, b.total, b.done, b.drawn = name, total, 0, -1
	return func() {
		if b.on {
			fmt.Fprint(b.out, "\r\x1b[K")
		}
	}
}

// step tells of one more trial. Calls must not overlap.
func (b *bar) step() {
	const full = 30
	b.done++
	at := b.done * full / b.total
	if !b.on || at == b.drawn {
		return
	}
	b.drawn = at
	fmt.Fprintf(b.out, "\r%-40s [%s%s] %d/%d\x1b[K", b.name, strings.Repeat("█", at), strings.Repeat("·", full-at), b.done, b.total)
}
