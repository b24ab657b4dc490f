package reconcile

import (
	"slices"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// An empty side that was cut off while it was sent everything goes on behind the key
// that it had come to. The key is a hint and proves nothing: what was changed, or is
// another peer's, before that key shows in the sync that follows.

// mayResume reports whether a sync can be answered from behind a key.
func (b *responder) mayResume() bool {
	h := b.hello
	return !h.DryRun && len(h.Prefix) == 0 && h.Span == (wire.Span{}) && h.Method != wire.MethodSketch && b.there.Records > 0 && b.here.Records > 0
}

// resumes reports whether this sync goes on behind a key: this side's own, if
// records may come to it, or else the initiator's. A side that has not come to the
// end gives nothing; two of these sync as others do.
func (b *responder) resumes() bool {
	return b.mayResume() && (b.gets && len(b.opts.Behind) > 0 && len(b.hello.Behind) == 0 || b.gives && len(b.opts.Behind) == 0 && len(b.hello.Behind) > 0)
}

// resume turns the method all into what is missing behind the key.
func (b *responder) resume() {
	switch {
	case !b.resumes():
	case len(b.opts.Behind) > 0:
		b.behind, b.gives = b.opts.Behind, false
	default:
		b.behind = b.hello.Behind
		b.aim(b.gives, false)
	}
}

// resume is the same at the initiator, which reads in the result what was decided.
func (a *initiator) resume(m *wire.Result) error {
	a.behind = m.Behind
	switch {
	case len(m.Behind) == 0:
	case a.opts.DryRun || len(a.opts.Prefix) > 0 || a.opts.Span != (wire.Span{}):
		return violation("records behind a key, in a sync that does not begin there")
	case slices.Equal(m.Behind, a.opts.Behind):
		a.gives = false
	case a.gives:
		a.aim(true, false)
	default:
		return violation("records behind a key that this side did not name")
	}
	return nil
}

// notes has it noted how far this side has been sent all records, if it was empty or
// goes on behind a key.
func (s *party) notes() {
	if s.here.Records == 0 || len(s.behind) > 0 {
		if len(s.take.prefix) == 0 && s.take.span == (wire.Span{}) {
			s.take.reached = s.opts.Received
		}
	}
}
