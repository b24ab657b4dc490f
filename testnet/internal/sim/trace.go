package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"time"
)

// Trace is a running hash of all events. Two runs with the same hash had the same
// events. The zero Trace is empty.
type Trace struct {
	sum  hash.Hash
	line []byte
}

// Note adds an event to the hash: its kind, its nodes and its bytes.
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
}

// Hash is the hash so far, in hexadecimal.
func (t *Trace) Hash() string {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	return hex.EncodeToString(t.sum.Sum(nil))[:32]
}

// Note adds an event of now to the trace.
func (w *World) Note(what string, a, b int, data []byte) { w.Trace.Note(w.now, what, a, b, data) }
