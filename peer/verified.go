package peer

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/internal/durable"
)

// verifiedFile is in the folder of a namespace: when its records were last proved equal
// to those of each member.
const verifiedFile = "verified.cbor"

// verifiedPause is the least time between two writes of that file: after a crash the
// times in it are at most so much too early.
const verifiedPause = time.Minute

// verified is when the records of a namespace were last proved equal to those of each
// peer. It is kept over restarts.
type verified struct {
	path string // empty: in memory only

	mu    sync.Mutex // guards what follows
	since time.Time  // the namespace is on this node since then, as far as is known
	at    map[ID]time.Time
	saved time.Time // by the monotonic clock
	fresh bool      // at has more than the file
}

// verifiedNote is the form on the disk, with times in Unix milliseconds.
type verifiedNote struct {
	Format int           `cbor:"1,keyasint"`
	Since  int64         `cbor:"2,keyasint"`
	Peers  []verifiedOne `cbor:"3,keyasint"`
}

type verifiedOne struct {
	ID []byte `cbor:"1,keyasint"`
	At int64  `cbor:"2,keyasint"`
}

// openVerified reads the file. Where the file is missing, the namespace counts as new here: it
// has been made, joined or restored. A file that cannot be read costs no more than that,
// and is returned as an error beside a value that is of use.
func openVerified(path string, now time.Time) (*verified, error) {
	v := &verified{path: path, since: now.UTC().Truncate(time.Millisecond), at: map[ID]time.Time{}}
	if path == "" {
		return v, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, v.save()
	}
	if err != nil {
		return v, err
	}
	var note verifiedNote
	if err := decodeState(path, b, &note); err != nil {
		return v, err
	}
	if err := checkFormat(path, note.Format); err != nil {
		return v, err
	}
	v.since = time.UnixMilli(note.Since).UTC()
	for _, one := range note.Peers {
		v.at[ID(one.ID)] = time.UnixMilli(one.At).UTC()
	}
	return v, nil
}

// note notes a sync that has proved the two sides equal. It is called with members
// alone, so that they bound it.
func (v *verified) note(id ID, at time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at[id], v.fresh = at.UTC().Truncate(time.Millisecond), true // as it is on the disk
	if !v.saved.IsZero() && time.Since(v.saved) < verifiedPause {
		return nil
	}
	return v.save()
}

// rest makes what is known durable before the namespace closes.
func (v *verified) rest() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fresh {
		return nil
	}
	return v.save()
}

// save writes the file; mu is held, or v is not shared yet.
func (v *verified) save() error {
	if v.path == "" {
		return nil
	}
	note := verifiedNote{Format: bookFormat, Since: v.since.UnixMilli()}
	for _, id := range slices.Sorted(maps.Keys(v.at)) {
		note.Peers = append(note.Peers, verifiedOne{[]byte(id), v.at[id].UnixMilli()})
	}
	b, err := cbor.Marshal(note)
	if err == nil {
		err = durable.WriteFile(v.path, b)
	}
	if err == nil {
		v.saved, v.fresh = time.Now(), false
	}
	return err
}

// with is when the records were last proved equal to a peer's; zero for never.
func (v *verified) with(id ID) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at[id]
}

// last is when they were last proved equal to those of any peer; zero for never. since
// is since when that could have been.
func (v *verified) last() (at, since time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.at {
		if t.After(at) {
			at = t
		}
	}
	return at, v.since
}

// openVerified opens what is known of a namespace's proofs.
func (n *Node) openVerified(ns *Namespace) {
	path := ""
	if n.dir != "" {
		path = filepath.Join(namespaceDir(n.dir, ns.id), verifiedFile)
	}
	var err error
	if ns.verified, err = openVerified(path, n.now()); err != nil {
		n.log.Warn("when the namespace was last proved equal to others is not known from before", logNamespace(ns), logError(err))
	}
}

// proved notes a sync of everything that has proved the two sides equal.
func (ns *Namespace) proved(id ID) {
	if err := ns.verified.note(id, ns.node.now()); err != nil {
		ns.node.log.Warn("that a sync has proved the sets equal could not be noted for the next start", logNamespace(ns), logError(err))
	}
}
