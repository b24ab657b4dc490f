// Package loglimit bounds what a peer, a member or a loop that fails again and again
// can write into the log. It wraps the handler of a log, so that no line goes around it:
//
//	log := slog.New(loglimit.New(handler, nil))
//
// Lines of one cause are written five times, and then once in ten seconds, with the number
// of those that were left out. A cause is a level, and a message up to its first digit:
// numbers, paths and addresses in a text make no other one. What must be counted exactly is a metric.
// Debug lines are all written: a person has asked for them.
package loglimit

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Burst lines of a cause are written at first, and after a pause of Burst times Pause:
	// enough to see what happens and why.
	Burst = 5
	// Pause is between two lines after that: at most 8,640 lines a day and cause.
	Pause = 10 * time.Second
	// mostCauses are told apart at once, in some 200 bytes each; all further ones count as one.
	mostCauses = 4096
)

// LeftOut is the attribute that counts the lines that were not written.
const LeftOut = "left_out"

// Handler is a handler of a log that leaves lines out. Make it with New.
type Handler struct {
	next  slog.Handler
	of    *causes
	about string // the attributes that With has given, as far as they are distinct
}

type causes struct {
	distinct func(slog.Attr) bool // see New

	mu    sync.Mutex // guards what follows
	known map[string]*cause
	swept time.Time // when those at rest were forgotten last
}

type cause struct {
	limiter *rate.Limiter
	leftOut int // since the last line that was written
}

// New wraps a handler. distinct says of an attribute that lines which differ in it have causes of their own.
// Its values must be few: no peer may choose them. nil: none does.
func New(next slog.Handler, distinct func(slog.Attr) bool) *Handler {
	return &Handler{next: next, of: &causes{distinct: distinct, known: map[string]*cause{}}}
}

// Enabled is as of the handler behind.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes a line, or counts it as left out; the next line of its cause then carries
// that count.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.next.Handle(ctx, r)
	}
	text := r.Message
	if i := strings.IndexAny(text, "0123456789"); i >= 0 {
		text = text[:i]
	}
	key := r.Level.String() + text + h.about
	r.Attrs(func(a slog.Attr) bool {
		key += h.of.part(a)
		return true
	})
	leftOut, ok := h.of.allow(key)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(LeftOut, leftOut))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.next = h.next.WithAttrs(attrs)
	for _, a := range attrs {
		with.about += h.of.part(a)
	}
	return &with
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	with := *h
	with.next = h.next.WithGroup(name)
	return &with
}

// part is what an attribute adds to the name of a cause.
func (c *causes) part(a slog.Attr) string {
	if c.distinct == nil || !c.distinct(a) {
		return ""
	}
	return "\x00" + a.Value.String()
}

func (c *causes) allow(key string) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	of := c.known[key]
	if of == nil && len(c.known) >= mostCauses {
		c.sweep(now)
		if len(c.known) >= mostCauses {
			key = ""
			of = c.known[key]
		}
	}
	if of == nil {
		of = &cause{limiter: rate.NewLimiter(rate.Every(Pause), Burst)}
		c.known[key] = of
	}
	if !of.limiter.AllowN(now, 1) {
		of.leftOut++
		return 0, false
	}
	leftOut, of.leftOut = of.leftOut, 0
	return leftOut, true
}

// sweep forgets the causes that may be written as often as new ones; mu is held.
func (c *causes) sweep(now time.Time) {
	if now.Sub(c.swept).Abs() < Pause {
		return
	}
	c.swept = now
	for key, of := range c.known {
		if of.limiter.TokensAt(now) >= Burst {
			delete(c.known, key)
		}
	}
}
