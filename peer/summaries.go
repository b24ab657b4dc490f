package peer

import (
	"errors"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// summaryLook is how often a node looks whether a summary is due, which costs next to
// nothing.
const summaryLook = time.Second

// keepSummaries keeps the namespaces' summaries up to date, until the node closes.
func (n *Node) keepSummaries() {
	for n.pause(summaryLook) {
		if err := n.core.KeepSummaries(n.ctx, n.awake.Elapsed()); err != nil && n.ctx.Err() == nil {
			n.log.Warn("the next start will take longer", logError(err))
		}
	}
}

// loaded logs how a live sketch was brought up to date.
func (n *Node) loaded(name string, l node.Loading) {
	log := n.log.With(slog.String("ns", name), slog.Bool("control", l.Control), slog.Uint64("records", l.Records))
	switch {
	case l.Scanned == nil:
		log.Info("the summary of the records was taken up", slog.Uint64("replayed", l.Replayed))
	case errors.Is(l.Scanned, ErrNotFound):
		log.Debug("there is no summary of the records: they were scanned")
	default:
		log.Warn("the summary of the records could not be used: they were scanned, and it will be made anew", logError(l.Scanned))
	}
}
