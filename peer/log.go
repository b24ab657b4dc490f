package peer

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"
)

// The attributes of log messages have the same names everywhere.

func logPeer(id ID) slog.Attr { return slog.Any("peer", id) }

func logNamespace(ns *Namespace) slog.Attr { return slog.String("ns", ns.Name()) }

// logError is the empty attribute, which handlers leave out, if err is nil.
func logError(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.Any("error", err)
}

// refusalLog limits the lines about streams that were refused: a stranger can
// cause them at will, under as many peer ids as it likes, so that the limit is
// one for each cause. The metrics count every refusal.
type refusalLog struct {
	mu     sync.Mutex
	causes map[string]*refusalCause // by message
}

type refusalCause struct {
	limiter    *rate.Limiter
	suppressed int // lines since the last that was written
}

// write logs a line, or counts it as suppressed; the next line of the same
// message then carries that count. Messages are constants of this package, so
// that there are few.
func (r *refusalLog) write(log *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	if !log.Enabled(context.Background(), level) {
		return
	}
	suppressed, ok := r.allow(message)
	if !ok {
		return
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	log.LogAttrs(context.Background(), level, message, attrs...)
}

func (r *refusalLog) allow(message string) (suppressed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.causes[message]
	if c == nil {
		if r.causes == nil {
			r.causes = map[string]*refusalCause{}
		}
		c = &refusalCause{limiter: rate.NewLimiter(rate.Every(refusalLogPause), refusalLogBurst)}
		r.causes[message] = c
	}
	if !c.limiter.Allow() {
		c.suppressed++
		return 0, false
	}
	suppressed, c.suppressed = c.suppressed, 0
	return suppressed, true
}
