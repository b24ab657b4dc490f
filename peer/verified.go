package peer

import (
	"errors"
	"fmt"
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
// to those of each member. Where it is cut into shards there is one for each,
// verified-17.cbor.
const (
	verifiedFile    = "verified.cbor"
	verifiedOfShard = "verified-%d.cbor"
)

// verifiedPause is the least time between two writes of that file: after a crash the
// times in it are at most so much too early.
const verifiedPause = time.Minute

// Proof is a sync of everything that has proved the records of two members equal.
type Proof struct {
	// With is the other member.
	With ID
	// At is when, by the clock of the node that tells of it.
	At time.Time
	// Differences is how many that sync had found; where it went in parts, how many the last
	// one of all records still found.
	Differences int64
}

// verified is when the records of a shard were last proved equal to those of each
// peer. It is kept over restarts.
type verified struct {
	path string // empty: in memory only

	mu    sync.Mutex // guards what follows
	since time.Time  // the namespace is on this node since then, as far as is known
	at    map[ID]Proof
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
	// Differences is how many that sync had found.
	Differences int64 `cbor:"3,keyasint"`
}

// openVerified reads the file. Where the file is missing, the namespace counts as new here: it
// has been made, joined or restored. A file that cannot be read costs no more than that,
// and is returned as an error beside a value that is of use.
func openVerified(path string, now time.Time) (*verified, error) {
	v := &verified{path: path, since: now.UTC().Truncate(time.Millisecond), at: map[ID]Proof{}}
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
		v.at[ID(one.ID)] = Proof{ID(one.ID), time.UnixMilli(one.At).UTC(), one.Differences}
	}
	return v, nil
}

// note notes a sync that has proved the two sides equal. It is called with members
// alone, so that they bound it.
func (v *verified) note(id ID, at time.Time, differences int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at[id], v.fresh = Proof{id, at.UTC().Truncate(time.Millisecond), int64(differences)}, true // as it is on the disk
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
		note.Peers = append(note.Peers, verifiedOne{[]byte(id), v.at[id].At.UnixMilli(), v.at[id].Differences})
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

// with is the last proof that the records equal a peer's; zero for never.
func (v *verified) with(id ID) Proof {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at[id]
}

// last is the last proof that they equal those of any peer; zero for never. since is
// since when that could have been.
func (v *verified) last() (p Proof, since time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.at {
		if one.At.After(p.At) {
			p = one
		}
	}
	return p, v.since
}

// openVerified opens what is known of the shard's proofs.
func (sh *shard) openVerified() {
	n, path := sh.ns.node, ""
	if n.dir != "" {
		name := verifiedFile
		if sh.ns.core.Rule() != nil {
			name = fmt.Sprintf(verifiedOfShard, sh.set.Shard())
		}
		path = filepath.Join(namespaceDir(n.dir, sh.ns.id), name)
	}
	var err error
	if sh.verified, err = openVerified(path, n.now()); err != nil {
		n.log.Warn("when the namespace was last proved equal to others is not known from before", logNamespace(sh.ns), logError(err))
	}
}

// proved notes a sync of everything that has proved the two sides equal.
func (sh *shard) proved(id ID, differences int) {
	if err := sh.verified.note(id, sh.ns.node.now(), differences); err != nil {
		sh.ns.node.log.Warn("that a sync has proved the sets equal could not be noted for the next start", logNamespace(sh.ns), logError(err))
	}
}

// proof is the last proof that the records equal a member's, of the shard of which that is
// longest ago, of those that it holds, too; zero for never.
func (ns *Namespace) proof(id ID) Proof {
	return oldest(ns.with(id), func(sh *shard) Proof { return sh.verified.with(id) })
}

// lastProof is the last proof that they equal those of any member, likewise.
func (ns *Namespace) lastProof() Proof {
	return oldest(ns.shards(), func(sh *shard) Proof {
		last, _ := sh.verified.last()
		return last
	})
}

// oldest is the oldest of the shards' proofs.
func oldest(all []*shard, of func(*shard) Proof) (p Proof) {
	for i, sh := range all {
		if one := of(sh); i == 0 || one.At.Before(p.At) {
			p = one
		}
	}
	return p
}
