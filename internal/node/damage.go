package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
)

// Lost says that the store of this node was damaged and made anew, and what that has cost.
// Members give back what they hold by syncs. What this node alone had written is lost for
// good, and nothing tells whether there was any: so it is kept in the state until a person
// accepts it.
type Lost struct {
	// Records is how many records were missing from the new store; -1: that is not known.
	Records int64 `cbor:"2,keyasint"`
	// At is when it was made, in Unix milliseconds.
	At int64 `cbor:"7,keyasint"`
	// Shards are those of which records were missing, ascending, in a namespace of shards.
	Shards []placement.Shard `cbor:"8,keyasint,omitempty"`
}

// Status is what users read of it; nil of nothing.
func (l *Lost) Status() *status.Lost {
	if l == nil {
		return nil
	}
	out := &status.Lost{Records: l.Records, At: time.UnixMilli(l.At).UTC()}
	for _, shard := range l.Shards {
		out.Shards = append(out.Shards, uint32(shard))
	}
	return out
}

func (l *Lost) clone() *Lost {
	if l == nil {
		return nil
	}
	c := *l
	c.Shards = slices.Clone(l.Shards)
	return &c
}

func (l *Lost) validate() error {
	if l != nil && (l.Records < -1 || len(l.Shards) > placement.MaxShards) {
		return errors.New("what is lost is over its bounds")
	}
	return nil
}

// Lose notes that the store was made anew. missing is how many records each of the parts
// lacks, of which the control namespace is the last; -1: that is not known.
func (s *State) Lose(missing []int64, now time.Time) {
	l := &Lost{At: now.UnixMilli()}
	if s.Lost != nil {
		l = s.Lost.clone()
	}
	for i, n := range missing {
		if n < 0 || l.Records < 0 {
			l.Records = -1
		} else {
			l.Records += n
		}
		if n != 0 && i < len(s.Shards) && !slices.Contains(l.Shards, s.Shards[i].Shard) {
			l.Shards = append(l.Shards, s.Shards[i].Shard)
		}
	}
	slices.Sort(l.Shards)
	s.Lost = l
}

// Lost is what damage to the store has cost; nil if nothing, or if that was accepted.
func (ns *Namespace) Lost() *Lost { return ns.state.Load().Lost.clone() }

// AcceptLoss ends what is said of a loss.
func (ns *Namespace) AcceptLoss() error {
	if ns.Lost() == nil {
		return nil
	}
	return ns.update(func(s *State) error {
		s.Lost = nil
		return nil
	})
}

// recovers reports whether one of the sets recovers.
func (ns *Namespace) recovers() bool {
	return slices.ContainsFunc(ns.Sets(), (*Set).Recovers)
}

// The state and the records may lie in different places, as where a server of
// databases holds the latter. Then records can be those of an older copy, or gone,
// while the state goes on. It says that this node holds what it has lost. A store
// whose records were restored has other ids of its change logs (dbadapter.LogID).
// So the state keeps the ids that it last went with.

// logSize is the length of the id of a change log.
const logSize = 8

// logs are the ids of the change logs of parts.
func logs(parts ...*Part) (ids []byte) {
	for _, p := range parts {
		ids = binary.BigEndian.AppendUint64(ids, uint64(p.Store.Log()))
	}
	return ids
}

// noteLogs gives a state the ids of the change logs as they are. It reports whether it had
// others, and whether that is so for another reason than that it had none.
func (ns *Namespace) noteLogs(s *State) (changed, other bool) {
	now := func(was []byte, parts ...*Part) []byte {
		is := logs(parts...)
		if !bytes.Equal(is, was) {
			changed, other = true, other || len(was) > 0
		}
		return is
	}
	if ns.rule == nil {
		s.Logs = now(s.Logs, ns.parts()...)
		return changed, other
	}
	s.Logs = now(s.Logs, &ns.Control)
	for _, set := range ns.Sets() {
		kept := set.in(s)
		kept.Log = now(kept.Log, &set.Part)
	}
	return changed, other
}

// compareLogs makes the namespace one that was restored from a copy, if its store
// is another one than the state last went with. The state that it is opened with
// says so, and is durable, before anything rests on it.
func (ns *Namespace) compareLogs(s *State) error {
	changed, other := ns.noteLogs(s)
	if !changed {
		return nil
	}
	if ns.otherStore = other; other {
		s.Recover()
	}
	if err := ns.save(s); err != nil {
		return fmt.Errorf("save the state of %s: %w", s.Name, err)
	}
	return nil
}

// OtherStore reports whether the opening found another store than the namespace had
// before. Its records were restored from a copy, or the store was made anew.
func (ns *Namespace) OtherStore() bool { return ns.otherStore }
