package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

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
		for _, set := range ns.Sets() {
			*set.filledTo(s) = nil // what was sent may be gone
		}
	}
	if err := ns.save(s); err != nil {
		return fmt.Errorf("save the state of %s: %w", s.Name, err)
	}
	return nil
}

// OtherStore reports whether the opening found another store than the namespace had
// before. Its records were restored from a copy, or the store was made anew.
func (ns *Namespace) OtherStore() bool { return ns.otherStore }
