package dbadapter

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
)

// LogID tells apart change logs in which one sequence number may stand for different
// changes. A namespace's log has one from its making on. It has another once its store
// was restored from a copy, or made anew from files that lacked something. Then numbers
// are given a second time, or changes are missing. A number is of use only with the id
// of its log. The zero LogID is that of no log.
type LogID uint64

// NewLogID draws an id.
func NewLogID() LogID {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails (crypto/rand)
		if id := LogID(binary.BigEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}

// String is 16 hexadecimal digits.
func (id LogID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// ParseLogID reads what String has written.
func ParseLogID(s string) (LogID, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if id := LogID(n); err == nil && id != 0 && id.String() == s {
		return id, nil
	}
	return 0, fmt.Errorf("%q is no id of a log: it has 16 hexadecimal digits", s)
}
