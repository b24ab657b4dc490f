package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The state and the records may lie in different places, as where a server of databases
// holds the latter. Then records can be those of an older copy, or gone, while the state
// goes on: it says that this node holds what it has lost. A store whose records were
// restored has other ids of its change logs (dbadapter.LogID), and so the state keeps the
// ids that it was last beside.

const logsSize = 2 * 8

func (ns *Namespace) logs() []byte {
	b := make([]byte, 0, logsSize)
	for _, p := range ns.parts() {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Store.Log()))
	}
	return b
}

// compareLogs makes the namespace, where its store is another one than the state was last
// beside, one that was restored from a copy: the state that it is opened with says so, and
// is durable, before anything rests on it.
func (ns *Namespace) compareLogs(s *State) error {
	logs := ns.logs()
	if bytes.Equal(logs, s.Logs) {
		return nil
	}
	if ns.otherStore = len(s.Logs) > 0; ns.otherStore {
		s.Vouched.Recovering = true
		s.FilledTo = nil // what was sent may be gone
	}
	s.Logs = logs
	if err := ns.save(s); err != nil {
		return fmt.Errorf("save the state of %s: %w", s.Name, err)
	}
	return nil
}

// OtherStore reports whether the opening found another store than the namespace had
// before: its records were restored from a copy, or the store was made anew.
func (ns *Namespace) OtherStore() bool { return ns.otherStore }
