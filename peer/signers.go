package peer

import (
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
)

// signers finds who signed a record without a writer (a dated import): it
// tries the members that may write, those that fitted last first, so that the
// usual record costs one check. Records that fit nobody cost a check for each
// member, and so only some of them get it, session by session; what comes
// beyond those is checked against the last two signers and the peer that sent
// it, no more.
type signers struct {
	mu      sync.Mutex
	order   []ID // the last that fitted first
	strayed int
}

const recentSigners = 2

// verify reports whether one of the roster's writers, or the sender, signed the
// record.
func (s *signers) verify(r *roster, from ID, message, signature []byte) bool {
	for _, id := range s.candidates(r, from) {
		if r.has(id, RoleWrite) && r.byID[id].signed(message, signature) {
			s.fitted(id)
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strayed++
	return false
}

func (s *signers) candidates(r *roster, from ID) []ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == nil {
		for _, m := range r.list {
			s.order = append(s.order, m.ID)
		}
		s.first(from)
	}
	if s.strayed >= maxStrayed {
		few := slices.Clone(s.order[:min(recentSigners, len(s.order))])
		return append(few, from)
	}
	return slices.Clone(s.order)
}

func (s *signers) fitted(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first(id)
}

// first moves an id to the front; mu is held.
func (s *signers) first(id ID) {
	if i := slices.Index(s.order, id); i > 0 {
		copy(s.order[1:i+1], s.order[:i])
		s.order[0] = id
	}
}

// signed reports whether the member's key made the signature.
func (m Member) signed(message, signature []byte) bool {
	key, err := publicKey(m.ID)
	if err != nil || len(signature) != dbadapter.SignatureSize {
		return false
	}
	ok, err := key.Verify(message, signature)
	return ok && err == nil
}
