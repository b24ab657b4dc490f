package badgerkv

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// loader commits in pieces.
type loader struct {
	db    *db
	batch batch
}

// loadBytes is when a piece is committed: half of what a commit takes.
const loadBytes = txnBytes / 2

func (d *db) Load() kv.Loader { return &loader{db: d} }

func (l *loader) Set(key, value []byte) error { return l.add(entry{key: key, value: value}) }
func (l *loader) Delete(key []byte) error     { return l.add(entry{key: key, deleted: true}) }

func (l *loader) add(e entry) error {
	if l.batch.size >= loadBytes || !l.db.fits(&l.batch, e.key, e.value) {
		if err := l.Flush(); err != nil {
			return err
		}
	}
	l.batch.add(e)
	return nil
}

func (l *loader) Flush() error {
	b := l.batch
	l.batch = batch{}
	if err := l.db.commit(&b); err != nil {
		return fmt.Errorf("write to the database: %w", err)
	}
	return nil
}

func (l *loader) Cancel() { l.batch = batch{} }
