package peer

import "log/slog"

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
