package testnet

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// get reads a key, and notes what the read comes to, if the scenario says what it should.
func (r *runner) get(e *plan.Event) {
	g := &gotten{event: e}
	if e.Finding != "" {
		r.gets = append(r.gets, g)
	}
	r.read(e, func(f *model.Found) { g.found = r.finding(f) })
}

// gotten is a read of which a scenario says what it should come to.
type gotten struct {
	event *plan.Event
	found plan.Finding // empty: it has not ended
}

// finding is what a read has come to.
func (r *runner) finding(f *model.Found) plan.Finding {
	switch {
	case errors.Is(f.Err, bodies.ErrLost):
		return plan.FoundLost
	case f.Err != nil:
		return plan.FoundShort
	case f.Record != nil && !f.Record.Deleted:
		return plan.FoundRecord
	case f.Nowhere:
		return plan.FoundNowhere
	}
	return plan.FoundNothing
}

// misread says of each read that came to something else than it should what it came to.
func (r *runner) misread() (all []string) {
	for _, g := range r.gets {
		switch g.found {
		case g.event.Finding:
		case "":
			all = append(all, fmt.Sprintf("%q was expected of %q, which has not ended", g.event.Finding, g.event))
		default:
			all = append(all, fmt.Sprintf("%q was to come to that, and came to %q", g.event, g.found))
		}
	}
	return all
}
