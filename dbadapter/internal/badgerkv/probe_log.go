package badgerkv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// A log holds the commits that are in no table yet:
//
//	key id(8) salt(12)  { meta(1) 0 klen vlen expiry(uvarints)  key time(8) value  crc(4) }…
//
// followed by zeros. The entries of one commit have one time, and its last has
// the mark finMark. After a crash the last commit may be torn, and Badger cuts
// the log off after the last whole one. Damage inside the log looks alike to
// Badger. It is told from a tear by two signs:
//
//   - a commit is written only after the one before it is on the disk: if there
//     are entries of a later commit behind the bad place, it was not torn;
//   - what a tear left out is still zeros, by whole sectors: if the mark of the
//     commit's end is there and no sector is empty, it was not torn.
//
// A commit that was the last, and whose end is what is damaged, cannot be told
// from a torn one.
const (
	logHeader   = 20
	deletedMark = 1
	txnMark     = 1 << 6
	finMark     = 1 << 7
	sector      = 512

	// probeAhead is how many bytes of a log are read at once.
	probeAhead = 1 << 20
)

// logEntry is what the probe wants to know of an entry.
type logEntry struct {
	end  int // the offset behind it
	time uint64
	fin  bool
}

func probeLog(path string) error {
	b, whole, err := readLog(path)
	if err != nil {
		return err
	}
	return afterWhole(path, b, whole)
}

// readLog reads a log up to somewhat beyond the end of its last whole commit.
func readLog(path string) (b []byte, whole int, err error) {
	defer damage.Recovered(path, &err)
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	// reach reads the file up to an offset and somewhat beyond, if it has not been read
	// so far: entries are short, and each asks.
	reach := func(to int) error {
		from := len(b)
		if to <= from {
			return nil
		}
		more := to + probeAhead - from
		if cap(b)-from < more {
			b = slices.Grow(b, max(more, from)) // at least twice as long: the log is copied once in all
		}
		b = b[:from+more]
		n, err := io.ReadFull(f, b[from:])
		b = b[:from+n]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return err
	}
	whole = logHeader
	open := uint64(0) // the time of a commit begun
	for at := logHeader; ; {
		// An entry is shorter than a transaction.
		if err := reach(at + txnBytes); err != nil {
			return nil, 0, err
		}
		e, err := readLogged(b, at)
		if err != nil || open != 0 && e.time != open {
			break
		}
		at, open = e.end, e.time
		if e.fin {
			whole, open = at, 0
		}
	}
	// The next commit, if any, begins in the first half of this, so that an
	// entry of it is seen.
	return b, whole, reach(whole + 2*txnBytes)
}

// afterWhole looks at what follows the last whole commit.
func afterWhole(path string, b []byte, whole int) error {
	var (
		first, last uint64 // the least and greatest time of an entry
		fin         = -1   // where the mark of an end ends
	)
	end := len(bytes.TrimRight(b, "\x00"))
	for at := whole; at < end; {
		e, err := readLogged(b, at)
		if err != nil {
			at++ // the lengths cannot be trusted: look at every place
			continue
		}
		if first == 0 || e.time < first {
			first = e.time
		}
		last = max(last, e.time)
		if e.fin {
			fin = e.end
		}
		at = e.end
	}
	switch {
	case first != last:
		return damage.File(path, "a commit at %d is damaged, and others follow it", whole)
	case fin >= 0 && !hasEmptySector(b, whole, fin):
		return damage.File(path, "the last commit, at %d, is damaged", whole)
	}
	return nil
}

func hasEmptySector(b []byte, from, to int) bool {
	var zeros [sector]byte
	for at := (from + sector - 1) / sector * sector; at+sector <= to; at += sector {
		if bytes.Equal(b[at:at+sector], zeros[:]) {
			return true
		}
	}
	return false
}

var (
	errNoEntry = errors.New("no entry")
	finKey     = []byte("!badger!txn")
)

// readLogged reads the entry at an offset, if there is one.
func readLogged(b []byte, at int) (logEntry, error) {
	start := at
	if at+2 > len(b) || b[at]&(txnMark|finMark) == 0 || b[at]&^(txnMark|finMark|deletedMark) != 0 || b[at+1] != 0 {
		return logEntry{}, errNoEntry
	}
	fin := b[at]&finMark != 0
	at += 2
	var n [3]uint64
	for i := range n {
		v, w := binary.Uvarint(b[at:])
		if w <= 0 {
			return logEntry{}, errNoEntry
		}
		n[i] = v
		at += w
	}
	klen, vlen := n[0], n[1]
	if left := uint64(len(b) - at); klen < 8 || klen > left || vlen > left-klen || left-klen-vlen < 4 || n[2] != 0 {
		return logEntry{}, errNoEntry
	}
	body := at + int(klen+vlen)
	if crc32.Checksum(b[start:body], castagnoli) != binary.BigEndian.Uint32(b[body:]) {
		return logEntry{}, errNoEntry
	}
	key := b[at : at+int(klen)]
	e := logEntry{end: body + 4, fin: fin, time: ^binary.BigEndian.Uint64(key[klen-8:])}
	if fin {
		value := string(b[at+int(klen) : body])
		if time, err := strconv.ParseUint(value, 10, 64); err != nil || time != e.time || !bytes.Equal(key[:klen-8], finKey) {
			return logEntry{}, fmt.Errorf("%w: the end of a commit says %q", errNoEntry, value)
		}
	}
	return e, nil
}
