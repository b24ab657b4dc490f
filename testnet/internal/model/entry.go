package model

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// logged is what one entry of the log says was done: a commit, unless one of the fields
// below it is there.
type logged struct {
	At     int64 // in milliseconds; the kept log has it
	Writes []dbadapter.Write
	Raise  *dbadapter.Timestamp
	Lower  *dbadapter.Timestamp
	Forget []uint64
}

// keptSummary is the content of the file of a summary.
type keptSummary struct {
	Seq     uint64
	Summary []byte
}

// sumSize is the length of the CRC-32C that comes before what is kept, for a bit that the
// disk flips.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(v any) []byte {
	b, err := cbor.Marshal(v)
	if err != nil {
		panic(err) // of these types
	}
	return append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli)), b...)
}

var errSum = errors.New("it does not fit its checksum")

func decode(b []byte, into any) error {
	if len(b) < sumSize || binary.BigEndian.Uint32(b) != crc32.Checksum(b[sumSize:], castagnoli) {
		return errSum
	}
	return cbor.Unmarshal(b[sumSize:], into)
}
