package damage

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

const (
	// mostFound bounds how many errors are kept of a namespace, and mostFoundBytes how
	// much of each: a bad block of 40 records gives as many.
	mostFound      = 8
	mostFoundBytes = 512
)

// Book holds the damage of all namespaces, and under the zero id that of the node.
type Book struct {
	log *slog.Logger
	now func() time.Time
	// aside runs what makes the book durable: damage is met under locks.
	aside func(func())

	saving sync.Mutex // held while the book is written

	mu      sync.Mutex   // guards what follows
	file    durable.File // without a path: it is not kept
	unsaved bool
	known   map[dbadapter.NamespaceID]*damaged
	// findings counts since the start, by name; cleared by nothing.
	findings map[string]int64
	last     uint64 // the number of the last finding
	// whole is up to which finding a namespace was verified, its files included.
	whole map[dbadapter.NamespaceID]uint64
}

type damaged struct {
	status.Damage
	last uint64
}

// bookedDamage is the form of the book on the disk.
type bookedDamage struct {
	Of []bookedFinding `cbor:"2,keyasint"`
}

type bookedFinding struct {
	ID       []byte   `cbor:"1,keyasint"`
	Found    []string `cbor:"2,keyasint"`
	Findings int64    `cbor:"3,keyasint"`
	At       int64    `cbor:"4,keyasint"` // Unix milliseconds
}

// NewBook makes a book that is kept in memory until Load.
func NewBook(log *slog.Logger, now func() time.Time, aside func(func())) *Book {
	return &Book{
		log: log, now: now, aside: aside, known: map[dbadapter.NamespaceID]*damaged{},
		findings: map[string]int64{}, whole: map[dbadapter.NamespaceID]uint64{},
	}
}

// Load adds what the file holds to what was met before, and keeps the book there from now
// on, as the owner's.
func (b *Book) Load(file durable.File, owner string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.file = file
	err := b.read()
	if err != nil && !errors.Is(err, durable.ErrDamaged) {
		b.file.Path = "" // it stays as it is
		return err
	}
	b.unsaved = b.unsaved || file.Owner != owner
	if b.file.Owner = owner; b.unsaved { // the store was being opened
		b.saveAside()
	}
	return err
}

// Close keeps what was met while the node closed.
func (b *Book) Close() error {
	b.mu.Lock()
	unsaved := b.unsaved
	b.mu.Unlock()
	if !unsaved {
		return nil
	}
	return b.save()
}

// read takes up the file; mu is held.
func (b *Book) read() error {
	var book bookedDamage
	if err := folder.LoadNote(b.file, &book); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, f := range book.Of {
		if len(f.ID) != len(dbadapter.NamespaceID{}) || len(f.Found) > mostFound {
			return durable.Damaged(b.file.Path, "is damaged (an entry is over its bounds)")
		}
		b.last++
		d := &damaged{status.Damage{Found: f.Found, Findings: f.Findings, At: time.UnixMilli(f.At).UTC()}, b.last}
		if met := b.known[dbadapter.NamespaceID(f.ID)]; met != nil {
			d.Findings, d.last = d.Findings+met.Findings, met.last
			for _, text := range met.Found {
				d.find(text)
			}
		}
		b.known[dbadapter.NamespaceID(f.ID)] = d
	}
	return nil
}

// noted is an error that is in the book.
type noted struct{ error }

func (n *noted) Unwrap() error { return n.error }

// Met takes an error into the book, if it speaks of damage to the store, and returns it.
// It does so once: an error that is handed on may be given again. The zero id, and no
// name, stand for the node.
func (b *Book) Met(id dbadapter.NamespaceID, name string, err error) error {
	if !errors.Is(err, dbadapter.ErrCorrupt) || errors.Is(err, backup.ErrDamaged) || errors.Is(err, durable.ErrDamaged) {
		return err
	}
	if _, ok := errors.AsType[*noted](err); ok {
		return err
	}
	text := clip(err.Error())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.findings[name]++
	d := b.known[id]
	if d == nil {
		d = &damaged{Damage: status.Damage{At: b.now().UTC()}}
		b.known[id] = d
		b.log.Error("the store is damaged: run syncd verify to see what it is; to repair it, stop the daemon and run syncd verify --repair; this is said once, and syncd status goes on to say it",
			slog.String("ns", name), slog.Any("error", err))
	}
	d.Findings, d.last = d.Findings+1, b.last
	if d.find(text) { // also where it is the first: a restart does not heal it
		b.unsaved = true
		b.saveAside()
	}
	return &noted{err}
}

// find adds an error, and reports whether it is new and there was room for it.
func (d *damaged) find(text string) bool {
	if len(d.Found) >= mostFound || slices.Contains(d.Found, text) {
		return false
	}
	d.Found = append(d.Found, text)
	return true
}

// saveAside makes the book durable soon; mu is held.
func (b *Book) saveAside() {
	b.aside(func() {
		if err := b.save(); err != nil {
			b.log.Warn("what was met of damage could not be noted: it is tried again when the node closes, and a crash forgets it", slog.Any("error", err))
		}
	})
}

// clip is the beginning of a text; an error may hold any bytes.
func clip(s string) string {
	if len(s) > mostFoundBytes {
		s = s[:mostFoundBytes] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// Of is a copy of what is known of a namespace; nil if there is nothing.
func (b *Book) Of(id dbadapter.NamespaceID) *status.Damage {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.known[id]
	if d == nil {
		return nil
	}
	c := d.Damage
	c.Found = slices.Clone(c.Found)
	return &c
}

// Counts are the findings since the start, by name.
func (b *Book) Counts() map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]int64, len(b.findings))
	for name, n := range b.findings {
		out[name] = n
	}
	return out
}

// Mark is the number of the last finding: what begins now does not speak of later ones.
func (b *Book) Mark() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Verified ends the damage of a namespace that was found whole, files included, by
// what has begun at a mark; and that of the node, once all of its namespaces were.
func (b *Book) Verified(id dbadapter.NamespaceID, mark uint64, all []dbadapter.NamespaceID) error {
	b.mu.Lock()
	b.whole[id] = mark
	healed := b.end(id, mark)
	least := mark
	for _, id := range all {
		least = min(least, b.whole[id])
	}
	healed = b.end(dbadapter.NamespaceID{}, least) || healed
	b.mu.Unlock()
	if !healed {
		return nil
	}
	return b.save()
}

// end ends the damage under an id, unless it was met after a mark; mu is held.
func (b *Book) end(id dbadapter.NamespaceID, mark uint64) bool {
	d := b.known[id]
	if d == nil || d.last > mark {
		return false
	}
	delete(b.known, id)
	return true
}

// Dropped forgets a namespace that is gone.
func (b *Book) Dropped(id dbadapter.NamespaceID) error {
	b.mu.Lock()
	_, known := b.known[id]
	delete(b.known, id)
	delete(b.whole, id)
	b.mu.Unlock()
	if !known {
		return nil
	}
	return b.save()
}

// save makes the book durable as it is now, unless it is not kept, or not yet.
func (b *Book) save() (err error) {
	b.saving.Lock()
	defer b.saving.Unlock()
	book := bookedDamage{}
	b.mu.Lock()
	file := b.file
	if file.Path == "" {
		b.mu.Unlock()
		return nil
	}
	b.unsaved = false
	defer func() {
		if err != nil {
			b.mu.Lock()
			b.unsaved = true
			b.mu.Unlock()
		}
	}()
	for id, d := range b.known {
		book.Of = append(book.Of, bookedFinding{id[:], slices.Clone(d.Found), d.Findings, d.At.UnixMilli()})
	}
	b.mu.Unlock()
	if len(book.Of) == 0 {
		return folder.Remove(file.Path)
	}
	slices.SortFunc(book.Of, func(a, b bookedFinding) int { return bytes.Compare(a.ID, b.ID) })
	return folder.SaveNote(file, book)
}
