package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile"
)

// A summary is a Live in bytes, kept by the store, so that start-up reads the changes
// since, and not all records. Integers are big-endian:
//
//	format(1) mapping version(1) keys(32) cells(4) { cell(16) }… estimator(256)
//	{ records(uvarint) digest(32, if records is not 0 or the digest is not) }…, a range each
//	records(8) digest(32)
//
// keys is the digest of a record that no namespace holds, under the namespace's hasher,
// plus the check of a pair under the key of the cells. Another secret, or another way
// of hashing, gives another one. What stands at the end is the sum of all ranges. The
// store finds damage; this finds bytes of another program, or of another namespace.
const (
	summaryFormat = 1
	summaryHead   = 1 + 1 + dbadapter.DigestSize + 4
	summaryEnd    = 8 + dbadapter.DigestSize
	// summaryCells bounds what is read: the longest live sketch.
	summaryCells = 1 << 17
)

// ErrSummary: a summary is not of this namespace, not of this version of the
// program, or not whole.
var ErrSummary = errors.New("the summary does not fit")

// Summary is the state as of the last commit, with the number of that commit's last
// change. The store is to keep it (dbadapter.Namespace.SaveSummary).
func (l *Live) Summary() (seq uint64, summary []byte) {
	l.mu.Lock()
	seq = l.undo.seq
	sketch, ranges := l.sketch.Clone(), l.ranges.Share()
	l.mu.Unlock()
	return seq, encodeSummary(l.keys, sketch, ranges)
}

func encodeSummary(keys reconcile.Keys, sketch *rateless.Sketch, ranges *rangesum.Table) []byte {
	n := sketch.Len()
	b := make([]byte, 0, summaryHead+n*rateless.CellSize+rateless.EstimatorSize+dbadapter.Ranges*(3+dbadapter.DigestSize)+summaryEnd)
	b = append(b, summaryFormat, rateless.MappingVersion)
	b = keysCheck(keys).AppendBinary(b)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = rateless.AppendCells(b, sketch.Prefix(n))
	b = append(b, sketch.Estimator()...)
	for r := range dbadapter.Range(dbadapter.Ranges) {
		s := ranges.Of(r, r+1)
		empty := uint64(0) // the lowest bit says whether a digest follows
		if s != (dbadapter.Sum{}) {
			empty = 1
		}
		b = binary.AppendUvarint(b, s.Records<<1|empty)
		if empty == 1 {
			b = s.Digest.AppendBinary(b)
		}
	}
	total := ranges.Total()
	b = binary.BigEndian.AppendUint64(b, total.Records)
	return total.Digest.AppendBinary(b)
}

// keysCheck tells the keys and the hashes of a namespace from others.
func keysCheck(keys reconcile.Keys) dbadapter.Digest {
	probe := dbadapter.Record{Key: []byte("summary"), Version: dbadapter.Version{Clock: 1}}
	d := keys.Hasher.Digest(&probe)
	cells := rateless.NewSketch(keys.Cells, 4)
	index := keys.Hasher.Index(probe.Key)
	cells.Add(coded.Pair(index, keys.Hasher.Checksum(index, 1, []dbadapter.Digest{d})))
	for i, c := range cells.Prefix(4) {
		d = d.Add(dbadapter.Digest{c.S1, c.S2 << i, uint64(c.Count), uint64(index)})
	}
	return d
}

// Restore replaces the state by a summary and the changes after it, for start-up. No
// commit may run meanwhile; the snapshots of before are of no use any longer. After an
// error the state is what it was: Load it. ErrSummary: the bytes are not a summary of
// this namespace.
func (l *Live) Restore(seq uint64, summary []byte, changes iter.Seq2[dbadapter.Change, error]) error {
	sketch, ranges, err := decodeSummary(l.keys, summary)
	if err != nil {
		return err
	}
	for c, err := range changes {
		if err != nil {
			return fmt.Errorf("replaying the changes after %d: %w", seq, err)
		}
		if c.Seq != seq+1 {
			return fmt.Errorf("replaying the changes: %w: %d follows %d", ErrSummary, c.Seq, seq)
		}
		seq = c.Seq
		follow(sketch, ranges, &c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sketch, l.ranges = sketch, ranges
	l.undo.restart(seq)
	return nil
}

func decodeSummary(keys reconcile.Keys, b []byte) (*rateless.Sketch, *rangesum.Table, error) {
	if len(b) < summaryHead {
		return nil, nil, fmt.Errorf("%w: it has %d bytes", ErrSummary, len(b))
	}
	if b[0] != summaryFormat || b[1] != rateless.MappingVersion {
		return nil, nil, fmt.Errorf("%w: it has format %d and mapping %d, this program writes %d and %d", ErrSummary, b[0], b[1], summaryFormat, rateless.MappingVersion)
	}
	if dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[2:])) != keysCheck(keys) {
		return nil, nil, fmt.Errorf("%w: it was made with other keys", ErrSummary)
	}
	n := int(binary.BigEndian.Uint32(b[summaryHead-4:]))
	b = b[summaryHead:]
	if n > summaryCells || len(b) < n*rateless.CellSize+rateless.EstimatorSize {
		return nil, nil, fmt.Errorf("%w: it is cut short within %d cells", ErrSummary, n)
	}
	cells, err := rateless.DecodeCells(b[:n*rateless.CellSize])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSummary, err)
	}
	b = b[n*rateless.CellSize:]
	sketch, err := rateless.Restore(keys.Cells, cells, rateless.Estimator(b[:rateless.EstimatorSize]))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSummary, err)
	}
	ranges, err := decodeRanges(b[rateless.EstimatorSize:])
	return sketch, ranges, err
}

func decodeRanges(b []byte) (*rangesum.Table, error) {
	ranges := &rangesum.Table{}
	for r := range dbadapter.Range(dbadapter.Ranges) {
		v, w := binary.Uvarint(b)
		if w <= 0 || w > 1 && b[w-1] == 0 || v&1 != 0 && len(b)-w < dbadapter.DigestSize || v != 0 && v&1 == 0 {
			return nil, fmt.Errorf("%w: it is cut short at range %d", ErrSummary, r)
		}
		if b = b[w:]; v == 0 {
			continue
		}
		s := dbadapter.Sum{Records: v >> 1, Digest: dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b))}
		if s == (dbadapter.Sum{}) {
			return nil, fmt.Errorf("%w: range %d is empty, and spelt out", ErrSummary, r)
		}
		from, _ := r.Bounds()
		ranges.Add(from, s) // unlike Set, it does not make the total anew
		b = b[dbadapter.DigestSize:]
	}
	if len(b) != summaryEnd {
		return nil, fmt.Errorf("%w: %d bytes stand behind its ranges", ErrSummary, len(b))
	}
	total := dbadapter.Sum{Records: binary.BigEndian.Uint64(b), Digest: dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[8:]))}
	if ranges.Total() != total {
		return nil, fmt.Errorf("%w: its ranges add up to %d records, and it counts %d", ErrSummary, ranges.Total().Records, total.Records)
	}
	return ranges, nil
}
