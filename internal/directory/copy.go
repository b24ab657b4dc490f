package directory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// ErrCopy is returned for a file that is no copy of a set.
var ErrCopy = errors.New("no copy of a set")

// magic begins a copy, as a file; its last byte is the version.
//
//	8 bytes  magic
//	4        shards
//	2        home
//	16       sum of the rows
//	8, 8     log of the host that told it, and the event as of which
//	1        length of the host's id, and the id
//	         blocks of rows, as those of the feed, until the last one
//	8        XXH3 of all that is before
const magic = "DIRCOPY\x01"

// place is how far a copy has come, in whose log.
type place struct {
	host     roster.ID
	log, seq uint64
}

// appendCopy appends the file of a copy.
func appendCopy(b []byte, shards int, home placement.Shard, at place, sum Sum, all iter.Seq[row]) ([]byte, error) {
	begin := len(b)
	b = binary.BigEndian.AppendUint32(append(b, magic...), uint32(shards))
	b = sum.appendTo(binary.BigEndian.AppendUint16(b, uint16(home)))
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, at.log), at.seq)
	b = append(append(b, byte(len(at.host))), at.host...)
	block := &Block{}
	var err error
	for x := range all {
		if len(block.rows) == keyset.MaxKeys {
			if b, err = appendRows(b, block.At, block.rows, false, shards); err != nil {
				return nil, err
			}
			block.At, block.rows = block.next(), block.rows[:0]
		}
		block.rows = append(block.rows, x)
	}
	if b, err = appendRows(b, block.At, block.rows, true, shards); err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(b, xxh3.Hash(b[begin:])), nil
}

// parseCopy reads the file of a copy.
func parseCopy(data []byte, shards int, home placement.Shard) (rs rows, at place, sum Sum, err error) {
	refuse := func(format string, args ...any) (rows, place, Sum, error) {
		return nil, place{}, Sum{}, fmt.Errorf("%w: %s", ErrCopy, fmt.Sprintf(format, args...))
	}
	if len(data) < len(magic)+8 || string(data[:len(magic)]) != magic {
		return refuse("it does not begin like one")
	}
	body := data[:len(data)-8]
	if xxh3.Hash(body) != binary.BigEndian.Uint64(data[len(body):]) {
		return refuse("its checksum does not fit")
	}
	p := &parser{rest: body[len(magic):], shards: shards}
	if n, h := binary.BigEndian.Uint32(p.take(4)), binary.BigEndian.Uint16(p.take(2)); n != uint32(shards) || h != uint16(home) {
		return refuse("it is of set %d of %d", h, n)
	}
	sum = p.sum()
	at.log, at.seq = p.uint64(), p.uint64()
	at.host = roster.ID(p.take(int(p.byte())))
	cursor := keyset.Cursor{}
	for last := false; !last && p.err == nil; {
		var block Block
		block.rows, block.At, block.Last = p.rows(&cursor)
		rs = append(rs, block.rows...)
		cursor, last = block.next(), block.Last
	}
	if p.err != nil || len(p.rest) > 0 {
		return refuse("%v; %d bytes are left over", p.err, len(p.rest))
	}
	if got := rs.sum(); got != sum {
		return refuse("its sum is %x, not %x", got, sum)
	}
	return rs, at, sum, nil
}

func (r rows) sum() (s Sum) {
	for _, x := range r {
		s.add(x, 1)
	}
	return s
}
