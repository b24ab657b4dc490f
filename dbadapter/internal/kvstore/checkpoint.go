package kvstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// checkpoint is a snapshot of each open namespace, all of the same read
// transaction.
type checkpoint struct {
	store     *Store
	head      head
	read      *readTxn
	snapshots []*snapshot // by namespace id
}

var _ dbadapter.Backuper = (*Store)(nil)

// Checkpoint holds on to the open namespaces; see dbadapter.Backuper.
func (s *Store) Checkpoint(ctx context.Context) (dbadapter.Checkpoint, error) {
	c := &checkpoint{store: s}
	if err := s.committer.do(ctx, func() error { return c.open() }); err != nil {
		return nil, fmt.Errorf("open a checkpoint: %w", err)
	}
	slices.SortFunc(c.snapshots, func(a, b *snapshot) int { return bytes.Compare(a.namespace.ID[:], b.namespace.ID[:]) })
	return c, nil
}

// open runs on the committer's goroutine: what it sees is between two commits,
// and the number of a namespace is there or is not given yet.
func (c *checkpoint) open() error {
	s := c.store
	if err := s.life.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.head, c.read = s.committer.head, s.last
	c.read.refs.Add(1)
	for _, n := range s.life.Open() {
		if n.Number == 0 {
			continue // it is being opened
		}
		if err := n.Life.Enter("open a checkpoint", n.ID); err != nil {
			continue // it is being closed
		}
		snap := &snapshot{namespace: n, seq: n.Shown.Seq, read: s.last}
		snap.read.refs.Add(1)
		n.Life.Opened(snap)
		n.Life.Leave()
		c.snapshots = append(c.snapshots, snap)
	}
	return nil
}

// Close releases the checkpoint. Idempotent.
func (c *checkpoint) Close() error {
	for _, s := range c.snapshots {
		s.Close()
	}
	if c.read != nil {
		c.read.release()
		c.read = nil
	}
	return nil
}

// mark says what a copy holds, so that the next one can go on from there. A line
// of copies is what one folder of backups has been given; the store notes the
// token of the copy of each line that was settled last, and a copy follows only
// that one: the files of the store may have been copied, or restored, and have
// become another store's since.
type mark struct {
	line, token [16]byte
	namespaces  []markedNamespace
}

type markedNamespace struct {
	id     dbadapter.NamespaceID
	number uint32
	seq    uint64
	kept   uint64 // the last entry of the kept log
}

const (
	markHead = 1 + 16 + 16
	markEach = 16 + 4 + 8 + 8
	// markFormat is the first byte of a mark.
	markFormat = 2
)

func (m *mark) encode() []byte {
	b := append([]byte{markFormat}, m.line[:]...)
	b = append(b, m.token[:]...)
	for _, n := range m.namespaces {
		b = append(b, n.id[:]...)
		b = binary.BigEndian.AppendUint32(b, n.number)
		b = binary.BigEndian.AppendUint64(b, n.seq)
		b = binary.BigEndian.AppendUint64(b, n.kept)
	}
	return layout.AppendSeal(b, 0, 0)
}

func decodeMark(b []byte) (m mark, err error) {
	const what = "the mark of a copy"
	body, err := layout.Unseal(b, 0, what)
	if err != nil {
		return m, err
	}
	if len(body) < markHead || body[0] != markFormat || (len(body)-markHead)%markEach != 0 {
		return m, damage.Corrupt(what, "it has %d bytes", len(b))
	}
	copy(m.line[:], body[1:])
	copy(m.token[:], body[17:])
	for rest := body[markHead:]; len(rest) > 0; rest = rest[markEach:] {
		m.namespaces = append(m.namespaces, markedNamespace{
			dbadapter.NamespaceID(rest[:16]), binary.BigEndian.Uint32(rest[16:]), binary.BigEndian.Uint64(rest[20:]), binary.BigEndian.Uint64(rest[28:]),
		})
	}
	return m, nil
}

// of is what the mark says of a namespace; ok is false where the copy does not hold
// it.
func (m *mark) of(n *namespace) (_ markedNamespace, ok bool) {
	for _, one := range m.namespaces {
		if one.id == n.ID && one.number == n.Number {
			return one, true
		}
	}
	return markedNamespace{}, false
}

// next makes the mark of this checkpoint, in the line of the copy before, and
// returns that one, nil if nothing can follow it.
func (c *checkpoint) next(since []byte) (now mark, before *mark, err error) {
	rand.Read(now.line[:]) // never fails (crypto/rand)
	rand.Read(now.token[:])
	for _, s := range c.snapshots {
		m, err := s.meta("copy")
		if err != nil {
			return now, nil, err
		}
		now.namespaces = append(now.namespaces, markedNamespace{s.namespace.ID, s.namespace.Number, s.seq, keptLast(&m)})
	}
	if since == nil {
		return now, nil, nil
	}
	m, err := decodeMark(since)
	if err != nil {
		return now, nil, err
	}
	now.line = m.line
	settled, err := kv.Get(c.read.txn, lineKey(m.line))
	if err != nil || settled == nil {
		return now, nil, err
	}
	body, err := layout.Unseal(settled, 0, "the note of a copy")
	if err != nil {
		return now, nil, err
	}
	if bytes.Equal(body[lineTime:], m.token[:]) {
		before = &m
	}
	return now, before, nil
}

// lineTime is how many bytes stand before the token in the note of a line: the
// number of commits, so that the oldest line can give way.
const lineTime = 8

// maxLines bounds how many lines of copies the store notes. A line that is
// forgotten goes on with a copy of all.
const maxLines = 16

// lineKey is the place of the note of a line: 0(4) 'b' line(16), and what stands
// there is commits(8) token(16) seal(8). A copy does not hold it.
func lineKey(line [16]byte) []byte { return append(appendPrefix(nil, 0, kindLine), line[:]...) }

// Settle notes that a copy is kept; see dbadapter.Backuper.
func (s *Store) Settle(ctx context.Context, encoded []byte) error {
	m, err := decodeMark(encoded)
	if err == nil {
		err = s.committer.do(ctx, func() error { return s.settle(&m) })
	}
	if err != nil {
		return fmt.Errorf("settle a copy: %w", err)
	}
	return nil
}

// settle runs on the committer's goroutine.
func (s *Store) settle(m *mark) error {
	return s.committer.unseen(func(txn kv.Txn) error { return s.stageLine(txn, m) })
}

// stageLine notes the copy of a line, in the place of the oldest one where there are many.
func (s *Store) stageLine(txn kv.Txn, m *mark) error {
	keys, err := s.keys(appendPrefix(nil, 0, kindLine), nil, 2*maxLines)
	if err != nil {
		return err
	}
	view := s.db.View()
	defer view.Close()
	var oldest []byte
	least := uint64(1<<64 - 1)
	for _, key := range keys {
		b, err := kv.Get(view, key)
		if err != nil {
			return err
		}
		body, err := layout.Unseal(b, 0, "the note of a copy")
		if err != nil {
			return err
		}
		if at := binary.BigEndian.Uint64(body); at < least && !bytes.Equal(key, lineKey(m.line)) {
			oldest, least = key, at
		}
	}
	if len(keys) >= maxLines && oldest != nil {
		if err := txn.Delete(oldest); err != nil {
			return err
		}
	}
	b := binary.BigEndian.AppendUint64(nil, s.committer.head.commits)
	return txn.Set(lineKey(m.line), layout.AppendSeal(append(b, m.token[:]...), 0, 0))
}

// Copy writes the namespaces; see dbadapter.Checkpoint.
func (c *checkpoint) Copy(ctx context.Context, w io.Writer, since []byte) (_ dbadapter.Copied, err error) {
	defer damage.Recovered("database", &err)
	now, before, err := c.next(since)
	if err != nil {
		return dbadapter.Copied{}, fmt.Errorf("copy the store: %w", err)
	}
	copied := dbadapter.Copied{Mark: now.encode(), Whole: true}
	out := newCopyWriter(w)
	for _, s := range c.snapshots {
		one, err := s.copyTo(ctx, out, before)
		if err != nil {
			return dbadapter.Copied{}, fmt.Errorf("copy namespace %x: %w", s.namespace.ID, err)
		}
		copied.Whole = copied.Whole && one.Since == 0
		copied.Namespaces = append(copied.Namespaces, one)
	}
	if err := out.end(c.head); err != nil {
		return dbadapter.Copied{}, fmt.Errorf("copy the store: %w", err)
	}
	return copied, nil
}
