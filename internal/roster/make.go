package roster

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Make is the value of a statement that an author makes on top of the heads of the set,
// as the set would take it; Add is the caller's, once the value is durable. Author, time,
// heads and epoch are filled in. A statement that would be refused, or would change nothing,
// is ErrRefused. One member too many is dbadapter.ErrLimit.
func Make(s *Set, st Statement, author ID, at dbadapter.Timestamp, sign func(message []byte) ([]byte, error)) ([]byte, error) {
	st.Author, st.At = author, at
	if st.Kind != Found {
		st.Heads = s.headsFor(author, st.Subject)
	}
	if st.Kind == Layout {
		st.Epoch = min(s.NextEpoch(), s.epochSeen(st.Heads)+maxStep)
	}
	if err := st.validate(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, st.Kind, err)
	}
	if err := s.fits(&st); err != nil {
		return nil, err
	}
	e := newEntry(&st, Hash{}, nil)
	s.see(e)
	if err := s.examine(e); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, st.Kind, err)
	}
	return st.Sign(s.cfg.Namespace, sign)
}

// fits refuses a new member that the namespace has no room for, or that versions
// could not tell from another.
func (s *Set) fits(d *Statement) error {
	l := s.List()
	if d.Kind != Grant || l.Role(d.Subject) > 0 {
		return nil
	}
	if len(l.members) >= MaxMembers {
		return fmt.Errorf("%w: a namespace has at most %d members", dbadapter.ErrLimit, MaxMembers)
	}
	writer, err := d.Subject.Writer()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if other, taken := l.ByWriter(writer); taken && other != d.Subject {
		return fmt.Errorf("%w: %s and %s have the same 64-bit writer id; one of them needs a new key", ErrRefused, other, d.Subject)
	}
	return nil
}

// headsFor are the heads that a statement names. Of more than MaxHeads, which only
// forks leave, it names those first that carry what makes the author an admin and the
// subject a member. Those by the subject go last, so that a removal is concurrent with
// what it leaves out.
func (s *Set) headsFor(author, subject ID) []Hash {
	heads := s.Heads()
	if len(heads) <= MaxHeads {
		return heads
	}
	v := s.all()
	var needed []int
	for _, id := range []ID{author, subject} {
		for _, t := range v.seats(id) {
			if t != root {
				needed = append(needed, t.entry())
			}
		}
		needed = append(needed, v.plain(id)...)
	}
	own := v.seats(author)
	weight := func(h Hash) (w int) {
		i := s.byHash[h]
		for _, n := range needed {
			if n == i || reaches(s.entries[i], n) {
				w -= 2
				if slices.Contains(own, seatOf(n)) {
					w -= 2 * MaxStatements // without it the author could not make the statement
				}
			}
		}
		if s.entries[i].Author == subject {
			w++
		}
		return w
	}
	heads = slices.Clone(heads)
	slices.SortStableFunc(heads, func(a, b Hash) int { return weight(a) - weight(b) })
	heads = heads[:MaxHeads]
	slices.SortFunc(heads, Hash.compare)
	return heads
}
