package peer

import (
	"log/slog"

	"github.com/syncd-io/syncd/internal/loglimit"
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

// limited is a log of which each line, whoever causes it, is bounded for each namespace and
// member.
func limited(log *slog.Logger) *slog.Logger {
	return slog.New(loglimit.New(log.Handler(), func(a slog.Attr) bool {
		switch a.Key {
		case "peer":
			_, one := a.Value.Any().(stranger)
			return !one
		case "ns", "step":
			return true
		}
		return false
	}))
}

// stranger is the id of a peer that is no member. It has as many as it likes, so that all
// strangers together have the lines of one member.
type stranger struct{ ID }

// logCaller is the attribute of a peer that has opened a stream.
func (n *Node) logCaller(id ID) slog.Attr {
	if n.isMember(id) {
		return logPeer(id)
	}
	return slog.Any("peer", stranger{id})
}
