package model

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// summaryFiles hold the summary of a namespace. Two files are written in turn, and a
// third says which of them is kept (turn(1) seq(8) CRC of the other file, CRC of what
// stands before it).
type summaryFiles struct {
	disk *sim.Disk
	name string
}

const keptSummary = 1 + 8 + 4 + 4

func (f summaryFiles) file(turn byte) *sim.File {
	return f.disk.File(f.name + "summary-" + string('a'+rune(turn)))
}

// kept is the file that says which summary is kept.
func (f summaryFiles) kept() *sim.File { return f.disk.File(f.name + "summary") }

func (f summaryFiles) save(seq uint64, summary []byte) error {
	turn := byte(0)
	if k := f.kept().Bytes(); len(k) > 0 {
		turn = (k[0] + 1) % 2
	}
	into := f.file(turn)
	into.Truncate(0)
	if len(summary) > 0 {
		if err := into.Write(0, summary); err != nil {
			return err
		}
	}
	into.Sync()
	b := binary.BigEndian.AppendUint64([]byte{turn}, seq)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(summary, castagnoli))
	return f.kept().Replace(binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
}

func (f summaryFiles) read() (seq uint64, summary []byte, err error) {
	k := f.kept().Bytes()
	if len(k) == 0 {
		return 0, nil, dbadapter.ErrNotFound
	}
	if len(k) != keptSummary || binary.BigEndian.Uint32(k[13:]) != crc32.Checksum(k[:13], castagnoli) {
		return 0, nil, corrupt("what says which summary is kept")
	}
	summary = f.file(k[0]).Bytes()
	if crc32.Checksum(summary, castagnoli) != binary.BigEndian.Uint32(k[9:]) {
		return 0, nil, corrupt("the summary")
	}
	return binary.BigEndian.Uint64(k[1:]), append([]byte(nil), summary...), nil
}
