package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/peer/status"
)

// ProofsFile is in the folder of a namespace: when its records were last proved equal
// to those of each member. Where it is cut into shards there is one for each,
// verified-17.cbor.
const (
	ProofsFile    = "verified.cbor"
	proofsOfShard = "verified-%d.cbor"
)

// proofsPause is the least time between two writes of that file. After a crash the
// times in it are at most so much too early.
const proofsPause = time.Minute

// Proofs are when the records of a shard were last proved equal to those of each
// peer. They are kept over restarts.
type Proofs struct {
	file durable.File // without a path: in memory only

	mu    sync.Mutex // guards what follows
	since time.Time  // the namespace is on this node since then, as far as is known
	at    map[status.ID]status.Proof
	saved time.Time // by the monotonic clock
	fresh bool      // at has more than the file
}

// proofsNote is the form on the disk, with times in Unix milliseconds.
type proofsNote struct {
	Since int64       `cbor:"2,keyasint"`
	Peers []proofNote `cbor:"3,keyasint"`
}

type proofNote struct {
	ID []byte `cbor:"1,keyasint"`
	At int64  `cbor:"2,keyasint"`
	// Differences is how many that sync had found.
	Differences int64 `cbor:"3,keyasint"`
}

// ProofsOf names the file in which the proofs of a namespace are kept, or of one of its shards.
func ProofsOf(shard int, sharded bool) string {
	if !sharded {
		return ProofsFile
	}
	return fmt.Sprintf(proofsOfShard, shard)
}

// OpenProofs opens what is known of a set's proofs. Without a path they are in memory only.
// The file on the disk has the owner expected; renewed: the node has a fresh key.
func OpenProofs(log *slog.Logger, f durable.File, expected string, renewed bool, now time.Time) *Proofs {
	p := &Proofs{since: now.UTC().Truncate(time.Millisecond), at: map[status.ID]status.Proof{}}
	if f.Path == "" {
		return p
	}
	p.file = f
	p.file.Owner = expected
	err := p.load()
	whole := err == nil && !renewed
	err = SetAside(log, f.Path, err, "when the records were last proved equal to others' is not known")
	if p.file.Owner = f.Owner; !whole && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		err = p.save()
	}
	if err != nil { // the disk, or a limit of the process: the file stays as it is
		p.file.Path = ""
		log.Warn("when the namespace was last proved equal to others is not known from before", slog.Any("error", err))
	}
	return p
}

// load reads the file. Where the file is missing, the namespace counts as new here: it has
// been made, joined or restored.
func (p *Proofs) load() error {
	var note proofsNote
	if err := LoadNote(p.file, &note); err != nil {
		return err
	}
	p.since = time.UnixMilli(note.Since).UTC()
	for _, one := range note.Peers {
		p.at[status.ID(one.ID)] = status.Proof{With: status.ID(one.ID), At: time.UnixMilli(one.At).UTC(), Differences: one.Differences}
	}
	return nil
}

// Note notes a sync that has proved the two sides equal. It is called with members
// alone, so that they bound it.
func (p *Proofs) Note(id status.ID, at time.Time, differences int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[id], p.fresh = status.Proof{With: id, At: at.UTC().Truncate(time.Millisecond), Differences: int64(differences)}, true // as it is on the disk
	if !p.saved.IsZero() && time.Since(p.saved) < proofsPause {
		return nil
	}
	return p.save()
}

// Close makes what is known durable before the namespace closes.
func (p *Proofs) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fresh {
		return nil
	}
	return p.save()
}

// save writes the file; mu is held, or p is not shared yet.
func (p *Proofs) save() error {
	if p.file.Path == "" {
		return nil
	}
	note := proofsNote{Since: p.since.UnixMilli()}
	for _, id := range slices.Sorted(maps.Keys(p.at)) {
		note.Peers = append(note.Peers, proofNote{[]byte(id), p.at[id].At.UnixMilli(), p.at[id].Differences})
	}
	err := SaveNote(p.file, note)
	if err == nil {
		p.saved, p.fresh = time.Now(), false
	}
	return err
}

// With is the last proof that the records equal a peer's; zero for never.
func (p *Proofs) With(id status.ID) status.Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[id]
}

// Last is the last proof that they equal those of any peer; zero for never. since is
// since when that could have been.
func (p *Proofs) Last() (last status.Proof, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.at {
		if one.At.After(last.At) {
			last = one
		}
	}
	return last, p.since
}

// Remove deletes what is known, and what is noted from now on is not kept.
func (p *Proofs) Remove() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := p.file.Path
	if p.file.Path = ""; path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
