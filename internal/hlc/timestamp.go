package hlc

import "time"

// Timestamp is a reading of a hybrid logical clock: 48 bits of milliseconds
// since 1970 above a counter of 16 bits.
type Timestamp uint64

// counterBits is the width of the logical part of a Timestamp.
const counterBits = 16

// At is the first reading of the millisecond that t falls in.
func At(t time.Time) Timestamp { return Timestamp(uint64(t.UnixMilli()) << counterBits) }

// UnixMilli is the physical part of the reading, in milliseconds since 1970.
func (t Timestamp) UnixMilli() int64 { return int64(t >> counterBits) }

// Time is the physical part of the reading, in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }
