package reconcile

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step verify: a decode proves itself by the residuals. A side's residual
// is its digest less the digests of all its records under the decoded
// indices. What is left must be the part that both have in common, so the two
// residuals are equal exactly if the decoding explains the whole difference,
// but for a chance of 2^-256 and members that forge (see docs/THREATS.md).

// remainder is this side's residual, and the bytes of its records under each
// role.
func (s *party) remainder() (dbadapter.Digest, [roles]int64, error) {
	r := s.here.digest
	var bytes [roles]int64
	for role, list := range s.plan.lists {
		for _, i := range list {
			records, err := s.own.bucket(i)
			if err != nil {
				return r, bytes, err
			}
			for n := range records {
				r = r.Sub(records[n].Digest)
				bytes[role] += recordSize(&records[n].Record)
			}
			if err := s.link.tick(); err != nil {
				return r, bytes, err
			}
		}
	}
	return r, bytes, nil
}

// result tells the responder's residual.
func (b *responder) result() error {
	defer b.link.in(StepVerify)()
	r, bytes, err := b.remainder()
	if err != nil {
		return err
	}
	b.residual = r
	gives := bytes[wire.Lacking] + bytes[wire.Newer] + bytes[roleOffered]
	if !b.gives {
		gives = 0
	} else if b.gets {
		gives += b.doubtful / 2 // of which half will come back
	}
	b.link.report.ForecastBytes = b.link.report.WireBytesSent + b.link.report.WireBytesReceived + gives
	return b.link.send(&wire.Result{Method: wire.MethodSketch, Residual: r, Bytes: uint64(gives), Estimate: uint64(b.link.report.Estimate)})
}

// prove compares the residuals, at the initiator.
func (a *initiator) prove(m *wire.Result) error {
	defer a.link.in(StepVerify)()
	r, bytes, err := a.remainder()
	if err != nil {
		return err
	}
	if r != m.Residual {
		return fmt.Errorf("%w: %d differences were decoded from %d cells, and do not explain the gap between the digests; nothing was applied",
			ErrNotVerified, a.plan.size(), a.cells)
	}
	a.residual = r
	if a.gives {
		a.sends = bytes[wire.Wanted] + bytes[wire.Older] + bytes[roleBid]
	}
	a.forecast(m)
	return nil
}

// forecast says what the sync will take, now that the differences are known.
func (a *initiator) forecast(m *wire.Result) {
	r := a.link.report
	r.ForecastBytes = r.WireBytesSent + r.WireBytesReceived + a.sends + int64(min(m.Bytes, 1<<62))
}

// addsUp fails if what came is not what the peer's digest stands for. It can
// tell only if everything came that the peer holds under the indices told;
// stayed counts the indices whose records may have stayed there, since they are
// older, travel as offers, or may not travel in this direction.
func (s *party) addsUp(stayed int) error {
	if stayed > 0 || s.there.digest.Sub(s.residual) == s.take.arrived {
		return nil
	}
	return fmt.Errorf("%w: the records that came do not add up to the digest that was announced", ErrNotVerified)
}

// conclude says whether everything that differed has been exchanged. A sync of
// one direction that had something for the other has not done that.
func (s *party) conclude() {
	r := s.link.report
	r.Behind = len(s.behind) > 0
	r.Verified = !r.Behind && r.Rejected == 0 && s.take.heldThere == 0 && (s.gives && s.gets || !s.heldBack())
}

// heldBack reports whether records may have been left where they were because
// of the direction of the sync.
func (s *party) heldBack() bool {
	other := wire.Lacking
	if s.pulls {
		other = wire.Wanted
	}
	return s.unseen > 0 || s.plan.count(other) > 0 || !s.gives && s.take.owes() > 0
}
