package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"time"
)

// Trace is a running hash of all that happens. Two runs with the same hash
// have done the same. The zero Trace is empty.
type Trace struct {
	sum  hash.Hash
	line []byte
	// Log, if not nil, is also given each note, for people.
	Log func(at time.Duration, what string, a, b int, data []byte)
}

// Note takes in that something has happened, between which nodes, and with
// which bytes.
func (t *Trace) Note(at time.Duration, what string, a, b int, data []byte) {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	line := binary.BigEndian.AppendUint64(t.line[:0], uint64(at))
	line = binary.BigEndian.AppendUint32(line, uint32(a))
	line = binary.BigEndian.AppendUint32(line, uint32(b))
	line = binary.BigEndian.AppendUint32(line, uint32(len(what)))
	line = binary.BigEndian.AppendUint32(line, uint32(len(data)))
	line = append(line, what...)
	t.line = line
	t.sum.Write(line)
	t.sum.Write(data)
	if t.Log != nil {
		t.Log(at, what, a, b, data)
	}
}

// Hash is the hash so far, in hexadecimal.
func (t *Trace) Hash() string {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	return hex.EncodeToString(t.sum.Sum(nil))[:32]
}

// Note takes into the trace that something has happened now.
func (w *World) Note(what string, a, b int, data []byte) { w.Trace.Note(w.now, what, a, b, data) }
