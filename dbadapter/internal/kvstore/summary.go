package kvstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// A summary is cut into parts, under the number of its generation. What makes a
// generation the one that is kept is one entry, written after all of its parts:
//
//	generation(8) seq(8) length(8) hash(8)  seal(8)
//
// A crash leaves the generation before, and parts that are not named, which the next
// save removes.
type keeps struct {
	generation uint64 // 0: no summary is kept
	seq        uint64
	length     uint64
	hash       uint64 // XXH3 of the whole
}

const (
	keepsSize = 4 * 8
	// partBytes is what one transaction writes of a summary. Commits wait for
	// no more than one.
	partBytes = 256 << 10
)

func keepsKey(number uint32) []byte { return appendPrefix(nil, number, kindKeeps) }

func partKey(number uint32, generation uint64, part uint32) []byte {
	b := binary.BigEndian.AppendUint64(appendPrefix(nil, number, kindPart), generation)
	return binary.BigEndian.AppendUint32(b, part)
}

func partSeed(number uint32, generation uint64, part uint32) uint64 {
	return layout.Seed(number, kindPart, generation<<32^uint64(part))
}

func (k *keeps) encode(number uint32) []byte {
	b := make([]byte, 0, keepsSize+layout.SealSize)
	for _, n := range [...]uint64{k.generation, k.seq, k.length, k.hash} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return layout.AppendSeal(b, 0, layout.Seed(number, kindKeeps, 0))
}

// readKeeps reads which summary is kept; the zero keeps if there is no summary.
func readKeeps(r kv.Reader, number uint32) (k keeps, err error) {
	b, err := kv.Get(r, keepsKey(number))
	if b == nil || err != nil {
		return k, err
	}
	return k, k.decode(b, number)
}

func (k *keeps) decode(b []byte, number uint32) error {
	const what = "the head of the summary"
	body, err := layout.Unseal(b, layout.Seed(number, kindKeeps, 0), what)
	if err != nil {
		return err
	}
	if len(body) != keepsSize {
		return damage.Corrupt(what, "it has %d bytes", len(body))
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	*k = keeps{at(0), at(1), at(2), at(3)}
	if k.generation == 0 || k.length > dbadapter.MaxSummary {
		return damage.Corrupt(what, "it names generation %d, of %d bytes", k.generation, k.length)
	}
	return nil
}

func (n *namespace) SaveSummary(ctx context.Context, seq uint64, summary []byte) error {
	if err := dbadapter.CheckSummary(summary); err != nil {
		return err
	}
	n.saving.Lock()
	defer n.saving.Unlock()
	between := func(run func() error) error { return n.Between(ctx, "save a summary", run) }
	var k keeps
	err := between(func() error {
		if seq > n.Meta.Seq {
			return fmt.Errorf("it is as of change %d, and the last change is %d", seq, n.Meta.Seq)
		}
		k = keeps{n.summary.generation + 1, seq, uint64(len(summary)), xxh3.Hash(summary)}
		return n.removeParts(n.summary.generation)
	})
	for part := uint32(0); err == nil && len(summary) > 0; part++ {
		some := summary[:min(len(summary), partBytes)]
		summary = summary[len(some):]
		err = between(func() error { return n.writePart(k.generation, part, some) })
	}
	if err == nil {
		err = between(func() error { return n.keepSummary(k) })
	}
	return err
}

// writePart runs on the committer's goroutine.
func (n *namespace) writePart(generation uint64, part uint32, b []byte) error {
	if err := n.store.disk.write(); err != nil {
		return err
	}
	entry := layout.AppendSeal(append(make([]byte, 0, len(b)+layout.SealSize), b...), 0, partSeed(n.Number, generation, part))
	return n.store.committer.unseen(func(txn kv.Txn) error { return txn.Set(partKey(n.Number, generation, part), entry) })
}

// keepSummary makes a summary the one that is kept, when its parts are written, and
// removes the one before. It runs on the committer's goroutine.
func (n *namespace) keepSummary(k keeps) error {
	err := n.store.committer.unseen(func(txn kv.Txn) error { return txn.Set(keepsKey(n.Number), k.encode(n.Number)) })
	if err != nil {
		return err
	}
	n.summary = k
	if err := n.removeParts(k.generation); err != nil {
		return err
	}
	return n.store.committer.trim(n)
}

// removeParts removes the parts of all generations but one. It runs on the
// committer's goroutine.
func (n *namespace) removeParts(but uint64) error {
	prefix := appendPrefix(nil, n.Number, kindPart)
	all, err := n.store.keys(prefix, prefix, 4*dbadapter.MaxSummary/partBytes)
	if err != nil {
		return err
	}
	var gone [][]byte
	for _, key := range all {
		if len(key) != prefixSize+8+4 || binary.BigEndian.Uint64(key[prefixSize:]) != but {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return n.store.remove(gone)
}

func (n *namespace) Summary(ctx context.Context) (uint64, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	s, err := n.snapshot()
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	k, summary, err := s.summary(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("read the summary: %w", err)
	}
	return k.seq, summary, nil
}

func (s *snapshot) summary(ctx context.Context) (k keeps, summary []byte, err error) {
	const what = "the summary"
	if err := s.locked("read the summary"); err != nil {
		return k, nil, err
	}
	defer s.mu.Unlock()
	number, txn := s.namespace.Number, s.read.txn
	if k, err = readKeeps(txn, number); err != nil {
		return k, nil, err
	}
	if k.generation == 0 {
		return k, nil, dbadapter.ErrNotFound
	}
	summary = make([]byte, 0, k.length)
	for part := uint32(0); uint64(len(summary)) < k.length; part++ {
		if err := ctx.Err(); err != nil {
			return k, nil, err
		}
		b, err := kv.Get(txn, partKey(number, k.generation, part))
		if err != nil {
			return k, nil, err
		}
		if b == nil {
			return k, nil, damage.Corrupt(what, "its part %d is missing", part)
		}
		body, err := layout.Unseal(b, partSeed(number, k.generation, part), what)
		if err != nil {
			return k, nil, err
		}
		if len(body) == 0 || uint64(len(body)) > k.length-uint64(len(summary)) {
			return k, nil, damage.Corrupt(what, "its part %d has %d bytes", part, len(body))
		}
		summary = append(summary, body...)
	}
	if xxh3.Hash(summary) != k.hash || k.seq > s.seq {
		return k, nil, damage.Corrupt(what, "it is not the one that was written")
	}
	return k, summary, nil
}
