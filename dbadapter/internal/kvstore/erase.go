package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// eraser removes the entries of dropped namespaces in the background, piece by
// piece. Its queue is the marks in the database: Close, or a crash, pauses it,
// and it goes on when the store is opened next.
type eraser struct {
	store *Store
	wake  chan struct{} // holds one call to look for marks
	stop  context.CancelFunc
	done  chan struct{} // closed when the goroutine has ended
	seek  func([]byte)  // called with the place that a piece is sought from; tests set it
}

// A piece is what one transaction removes. A write that comes meanwhile waits
// for one of them, so it is small beside a transaction's bounds.
const erasePiece = 1024

func (e *eraser) start(s *Store) {
	ctx, stop := context.WithCancel(context.Background())
	*e = eraser{store: s, wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{}), seek: func([]byte) {}}
	e.look()
	go e.loop(ctx)
}

// close ends the goroutine, at the latest after one piece.
func (e *eraser) close() {
	e.stop()
	<-e.done
}

// look makes the eraser look for marks.
func (e *eraser) look() {
	select {
	case e.wake <- struct{}{}:
	default: // it is about to look
	}
}

func (e *eraser) loop(ctx context.Context) {
	defer close(e.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil {
			e.store.log.Error("a dropped namespace still takes up room: erasing it failed; the next drop, or opening the store again, tries it again",
				slog.String("dir", e.store.dir), slog.Any("err", err))
		}
	}
}

// sweep erases all that is marked, one number after another.
func (e *eraser) sweep(ctx context.Context) error {
	var failed error
	for number := uint32(0); ctx.Err() == nil; {
		next, err := e.marked(number)
		if next == 0 || err != nil {
			return errors.Join(failed, err)
		}
		number = next
		failed = errors.Join(failed, e.erase(ctx, number))
	}
	return failed
}

// marked is the least marked number above another, 0 if there is no such number.
func (e *eraser) marked(above uint32) (uint32, error) {
	keys, err := e.store.keys(appendPrefix(nil, 0, kindDrop), dropKey(above+1), 1)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	if len(keys[0]) != prefixSize+4 {
		return 0, damage.Corrupt("the mark of a dropped namespace", "its key has %d bytes", len(keys[0]))
	}
	return binary.BigEndian.Uint32(keys[0][prefixSize:]), nil
}

// erase removes all entries of a number, and then its mark. Each piece begins
// after the one before: Badger steps over each entry that it has deleted, and
// from the first entry on, the time would grow with the square of their number.
func (e *eraser) erase(ctx context.Context, number uint32) error {
	prefix := binary.BigEndian.AppendUint32(nil, number)
	for from := prefix; ; {
		// Erasing makes room in the end, and may use half of the reserve.
		if err := e.store.disk.require(e.store.disk.min / 2); err != nil {
			return err
		}
		e.seek(from)
		keys, err := e.store.keys(prefix, from, erasePiece)
		if err != nil {
			return err
		}
		last := len(keys) == 0
		if last {
			keys = [][]byte{dropKey(number)}
		}
		if err := e.store.committer.do(ctx, func() error { return e.store.remove(keys) }); last || err != nil {
			return err
		}
		from = append(keys[len(keys)-1], 0)
	}
}

// keys reads up to a number of keys with a prefix, from one on.
func (s *Store) keys(prefix, from []byte, most int) (keys [][]byte, err error) {
	view := s.db.View()
	defer view.Close()
	defer damage.Recovered("database", &err)
	it := view.Iterate(prefix)
	defer it.Close()
	size := 0
	for it.Seek(from); it.Valid() && len(keys) < most && size < dbadapter.MaxBatchBytes; it.Next() {
		key := bytes.Clone(it.Key())
		keys, size = append(keys, key), size+len(key)
	}
	return keys, it.Err()
}

// remove deletes keys in one transaction. It runs on the committer's goroutine.
func (s *Store) remove(keys [][]byte) error {
	txn := s.db.Begin()
	defer txn.Discard()
	for _, key := range keys {
		if err := txn.Delete(key); err != nil {
			return err
		}
	}
	return s.committer.finishUnseen(txn)
}

// dropKey is the mark of a namespace whose entries are to be erased.
func dropKey(number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendPrefix(nil, 0, kindDrop), number)
}
