package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Lost is what this node held, and lacks since damaged files of its store were made
// anew, as far as no member gave it back. It is kept in the state until a person
// accepts it: a write that no member held is gone for good.
type Lost struct {
	// Keys are those of missing records, dbadapter.MaxNamed of them at most.
	Keys [][]byte `cbor:"1,keyasint"`
	// Unnamed is how many more were missing when it was found; -1 if that is not known.
	Unnamed int64 `cbor:"2,keyasint"`
	// Control: the list of members, or what members say of themselves, lacks something.
	Control bool `cbor:"3,keyasint"`
	// Older: records may be older ones than were held.
	Older bool `cbor:"4,keyasint"`
	// SetAside is how many records were set aside since they may be older ones, and Kept
	// how many entries of the kept log are gone.
	SetAside int `cbor:"5,keyasint"`
	Kept     int `cbor:"6,keyasint"`
	// At is when it was found, in Unix milliseconds.
	At int64 `cbor:"7,keyasint"`
}

func (l *Lost) clone() *Lost {
	if l == nil {
		return nil
	}
	c := *l
	c.Keys = slices.Clone(l.Keys)
	return &c
}

func (l *Lost) validate() error {
	if l == nil {
		return nil
	}
	if len(l.Keys) > dbadapter.MaxNamed || l.Unnamed < -1 || slices.ContainsFunc(l.Keys, func(k []byte) bool { return len(k) > dbadapter.MaxKey }) {
		return errors.New("what is lost is over its bounds")
	}
	return nil
}

// Missing reports whether a record may be missing that no member gave back.
func (l *Lost) Missing() bool { return l != nil && (len(l.Keys) > 0 || l.Unnamed != 0) }

// Regainable reports whether a member may give back something of it: not where only
// entries of the kept log are gone, which stay with the node that kept them.
func (l *Lost) Regainable() bool { return l.Missing() || l != nil && (l.Control || l.Older) }

// add takes up what a salvage has left behind.
func (l *Lost) add(data, control dbadapter.Loss, older bool) {
	for _, key := range data.Keys {
		if len(l.Keys) < dbadapter.MaxNamed && !slices.ContainsFunc(l.Keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			l.Keys = append(l.Keys, key)
		}
	}
	switch {
	case data.Records < 0 || l.Unnamed < 0:
		l.Unnamed = -1
	default:
		l.Unnamed += max(0, data.Records-int64(len(data.Keys)))
	}
	l.SetAside, l.Kept = l.SetAside+data.SetAside, l.Kept+data.Kept
	l.Control, l.Older = l.Control || control.Any(), l.Older || older
}

// Lose notes what a salvage of the store has left the namespace without.
func (s *State) Lose(data, control dbadapter.Loss, older bool, now time.Time) {
	if !older && !data.Any() && !control.Any() {
		return
	}
	if s.Lost == nil {
		s.Lost = &Lost{At: now.UnixMilli()}
	}
	s.Lost.add(data, control, older)
}

// MayLack makes the namespace one that was restored from a copy, durably, before its
// store is salvaged: it vouches for nothing and keeps nothing out until it was found
// equal with a member.
func (ns *Namespace) MayLack() error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	for _, set := range ns.Sets() {
		set.tenure.loses(ns.node.elapsed()) // also where it recovers from an earlier loss
		if err := set.vouch(func(w *watermark) bool { w.lose(); return true }); err != nil {
			return err
		}
	}
	return nil
}

// Salvaged follows a salvage of the store: what is kept of the records is computed
// anew, what is lost is noted, and the list of members is put back from memory. It returns
// of how many ranges the sums were others. A loss that could not be made durable is known
// all the same, and the next change of the state makes it so.
func (ns *Namespace) Salvaged(ctx context.Context, data, control dbadapter.Loss, older bool) (ranges int, err error) {
	failed := ns.lose(data, control, older)
	ns.updating.Lock()
	failed = errors.Join(failed, ns.restoreList(ctx))
	ns.updating.Unlock()
	for _, set := range ns.Sets() {
		set.vouching.waiting.again()
	}
	d, _, err := ns.Audit(ctx, nil)
	return d.Ranges, errors.Join(failed, err)
}

// lose notes what is lost, in the memory also where that cannot be made durable.
func (ns *Namespace) lose(data, control dbadapter.Loss, older bool) error {
	lost := older || data.Any() || control.Any()
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if changed, _ := ns.noteLogs(ns.Members().state.clone()); !lost && !changed {
		return nil // the state need not be written
	}
	note := func(s *State) error {
		s.Lose(data, control, older, ns.node.Now())
		ns.noteLogs(s)
		return nil
	}
	if lost {
		ns.losses++
	}
	err := ns.updateLocked(note)
	if err != nil && !ns.over {
		members := ns.Members()
		next := members.state.clone()
		_ = note(next) // never fails
		ns.members.Store(newMembers(next, members.List))
		ns.unsaved = true
	}
	return err
}

// Lost is what the node lacks; nil if it lacks nothing.
func (ns *Namespace) Lost() *Lost { return ns.Members().state.Lost.clone() }

// Regain takes off the list of what is lost the keys that hold a record again. How many
// are not named stays until AcceptLoss: what members gave since may be what was lost, or
// new writes of theirs, and nothing tells. Once the node was found equal with a member,
// nothing is older than what the members hold, and the list of members is theirs.
func (ns *Namespace) Regain() error {
	for over := false; !over; {
		lost, losses := ns.Losses()
		if lost == nil {
			return nil
		}
		held, err := ns.holds(lost.Keys)
		if err != nil {
			return err
		}
		if over, err = ns.regained(held, losses); err != nil {
			return err
		}
	}
	return nil
}

// recovers reports whether one of the sets recovers. updating is held.
func (ns *Namespace) recovers() bool {
	return slices.ContainsFunc(ns.Sets(), func(set *Set) bool { return set.vouching.mark.Recovering })
}

// holds is which of the keys hold a record.
func (ns *Namespace) holds(keys [][]byte) (held map[string]bool, err error) {
	held = map[string]bool{}
	for _, set := range ns.Sets() {
		if err := set.holds(keys, held); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// holds marks those of the keys that hold a record.
func (set *Set) holds(keys [][]byte, held map[string]bool) error {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for _, key := range keys {
		switch _, err := snap.Get(key); {
		case err == nil:
			held[string(key)] = true
		case !errors.Is(err, dbadapter.ErrNotFound):
			return err
		}
	}
	return nil
}

// regained takes off the list the keys that are held, and reports whether it could: not if
// there was another loss since they were looked for, which may be one of the same keys.
func (ns *Namespace) regained(held map[string]bool, losses uint64) (done bool, err error) {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.losses != losses {
		return false, nil
	}
	before, lost := ns.Lost(), ns.Lost()
	if lost == nil { // it was accepted
		return true, nil
	}
	lost.Keys = slices.DeleteFunc(lost.Keys, func(key []byte) bool { return held[string(key)] })
	if !ns.recovers() {
		lost.Control, lost.Older = false, false
	}
	if lost.Control == before.Control && lost.Older == before.Older && len(lost.Keys) == len(before.Keys) && !ns.unsaved {
		return true, nil
	}
	return true, ns.updateLocked(func(s *State) error {
		s.Lost = lost
		if !lost.Regainable() && lost.SetAside == 0 && lost.Kept == 0 {
			s.Lost = nil
		}
		return nil
	})
}

// Losses is Lost, and how many losses were found since the opening. A member that was
// asked before the last of them was not asked for what that has taken.
func (ns *Namespace) Losses() (*Lost, uint64) {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	return ns.Lost(), ns.losses
}

// AcceptLoss ends the list of what is lost.
func (ns *Namespace) AcceptLoss() error {
	if ns.Lost() == nil {
		return nil
	}
	return ns.update(func(s *State) error {
		s.Lost = nil
		return nil
	})
}
