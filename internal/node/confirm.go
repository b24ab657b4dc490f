package node

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Others are the members that a wait waits for where it names none, in the order of
// their ids. They are all but this node, those whose role is over and those that
// have lapsed.
func (ns *Namespace) Others() (ids []ID) {
	members, now := ns.Members(), ns.node.Now()
	for _, m := range members.Members() {
		if m.ID != ns.node.ID && members.Admits(m.ID, now) && !m.Lapsed {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Awaiting decides when as many members as are asked for hold what a wait waits for.
type Awaiting struct {
	of   []ID
	need int
	held map[ID]bool
	last map[ID]error // why not yet
}

// NewAwaiting begins a wait for count of some members, or for all of them where
// count is 0. Where no members are named, it waits for Others.
func (ns *Namespace) NewAwaiting(named []ID, count int) (*Awaiting, error) {
	of := ns.Others()
	if len(named) > 0 {
		of = slices.Compact(slices.Sorted(slices.Values(named)))
		for _, id := range of {
			if id == ns.node.ID || !ns.Admits(id) {
				return nil, fmt.Errorf("%w: %s is not another member of the namespace", ErrInvalid, id)
			}
		}
	}
	switch {
	case count < 0:
		return nil, fmt.Errorf("%w: a wait for %d members", ErrInvalid, count)
	case count > len(of):
		return nil, fmt.Errorf("%w: a wait for %d members, of whom there are %d beside this node (members that have lapsed do not count unless they are named)", ErrInvalid, count, len(of))
	case count == 0:
		count = len(of)
	}
	return &Awaiting{of: of, need: count, held: map[ID]bool{}, last: map[ID]error{}}, nil
}

// Of are the members to ask.
func (a *Awaiting) Of() []ID { return a.of }

// Heard notes what a member said last: err is nil if it holds what is waited for. What it
// holds it does not lose: a later error changes nothing.
func (a *Awaiting) Heard(id ID, err error) {
	if err == nil {
		a.held[id] = true
		delete(a.last, id)
	} else if !a.held[id] {
		a.last[id] = err
	}
}

// Done reports whether as many members hold it as are asked for.
func (a *Awaiting) Done() bool { return len(a.held) >= a.need }

// Need is how many members are asked for.
func (a *Awaiting) Need() int { return a.need }

// Result lists the members that hold it, and those that were not heard to, with the
// last reason. The reason is nil where there was no answer yet.
func (a *Awaiting) Result() (held []ID, missing []ID, why map[ID]error) {
	for _, id := range a.of {
		if a.held[id] {
			held = append(held, id)
		} else {
			missing = append(missing, id)
		}
	}
	return held, missing, a.last
}

// VersionQuestion asks whether a peer holds a version of a key, or a later one.
func (set *Set) VersionQuestion(key []byte, v dbadapter.Version) (*wire.AskKey, error) {
	q, err := set.HeldQuestion(key)
	switch {
	case err != nil:
		return nil, err
	case v.IsZero() && q.Held.Version.IsZero():
		return nil, fmt.Errorf("%w: this node holds nothing under the key to wait for", dbadapter.ErrNotFound)
	case v.IsZero(), q.Held.Version == v:
		return q, nil
	}
	return &wire.AskKey{Held: dbadapter.Record{Key: key, Version: v}}, nil // overwritten, or collected, since
}

// Confirms is nil if the answer says that the peer holds the version asked about,
// or a later one, or has collected it. Where this node holds the version, the
// peer's content must be the same. Otherwise the error says what the peer holds.
func (set *Set) Confirms(remote ID, q *wire.AskKey, reply *wire.Reply) error {
	w, err := set.Explain(remote, q, reply)
	switch {
	case err != nil:
		return err
	case w.There.Version.IsZero():
	case w.There.Version.Compare(q.Held.Version) > 0, w.Standing == status.StandingSame,
		w.There.Version == q.Held.Version && q.Digest == dbadapter.Digest{}:
		return nil
	}
	why := ""
	for _, c := range w.Causes {
		if c.Kind == status.CauseCollectedThere {
			return nil
		}
		why += "; " + c.Text
	}
	return fmt.Errorf("%w: %s%s", errNotThere, w.Standing, why)
}

// SetQuestion asks whether a peer holds the same records as this node.
func (set *Set) SetQuestion() *wire.AskSet { return &wire.AskSet{Sum: set.sum()} }

// ConfirmsSet is nil if the answer says that the peer holds what this node held
// when it asked. Two sets of one digest are one set.
func ConfirmsSet(q *wire.AskSet, reply *wire.Reply) error {
	a, ok := reply.Answer.(*wire.SetAnswer)
	if ok && a.Sum == q.Sum {
		return nil
	}
	return fmt.Errorf("%w: the two hold different records", errNotThere)
}

// errNotThere: a peer has answered, and does not hold what is waited for.
var errNotThere = fmt.Errorf("not there yet")
