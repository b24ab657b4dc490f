package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

// verifiedFile is in the folder of a namespace: when its records were last proved equal
// to those of each member. Where it is cut into shards there is one for each,
// verified-17.cbor.
const (
	verifiedFile    = "verified.cbor"
	verifiedOfShard = "verified-%d.cbor"
)

// verifiedPause is the least time between two writes of that file. After a crash the
// times in it are at most so much too early.
const verifiedPause = time.Minute

// verified is when the records of a shard were last proved equal to those of each
// peer. It is kept over restarts.
type verified struct {
	file durable.File // without a path: in memory only

	mu    sync.Mutex // guards what follows
	since time.Time  // the namespace is on this node since then, as far as is known
	at    map[ID]status.Proof
	saved time.Time // by the monotonic clock
	fresh bool      // at has more than the file
}

// verifiedNote is the form on the disk, with times in Unix milliseconds.
type verifiedNote struct {
	Since int64         `cbor:"2,keyasint"`
	Peers []verifiedOne `cbor:"3,keyasint"`
}

type verifiedOne struct {
	ID []byte `cbor:"1,keyasint"`
	At int64  `cbor:"2,keyasint"`
	// Differences is how many that sync had found.
	Differences int64 `cbor:"3,keyasint"`
}

// load reads the file. Where the file is missing, the namespace counts as new here: it has
// been made, joined or restored.
func (v *verified) load() error {
	var note verifiedNote
	if err := folder.LoadNote(v.file, &note); err != nil {
		return err
	}
	v.since = time.UnixMilli(note.Since).UTC()
	for _, one := range note.Peers {
		v.at[ID(one.ID)] = status.Proof{With: ID(one.ID), At: time.UnixMilli(one.At).UTC(), Differences: one.Differences}
	}
	return nil
}

// note notes a sync that has proved the two sides equal. It is called with members
// alone, so that they bound it.
func (v *verified) note(id ID, at time.Time, differences int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at[id], v.fresh = status.Proof{With: id, At: at.UTC().Truncate(time.Millisecond), Differences: int64(differences)}, true // as it is on the disk
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
	if v.file.Path == "" {
		return nil
	}
	note := verifiedNote{Since: v.since.UnixMilli()}
	for _, id := range slices.Sorted(maps.Keys(v.at)) {
		note.Peers = append(note.Peers, verifiedOne{[]byte(id), v.at[id].At.UnixMilli(), v.at[id].Differences})
	}
	err := folder.SaveNote(v.file, note)
	if err == nil {
		v.saved, v.fresh = time.Now(), false
	}
	return err
}

// with is the last proof that the records equal a peer's; zero for never.
func (v *verified) with(id ID) status.Proof {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at[id]
}

// last is the last proof that they equal those of any peer; zero for never. since is
// since when that could have been.
func (v *verified) last() (p status.Proof, since time.Time) {
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
	n, name := sh.ns.node, verifiedFile
	v := &verified{since: n.now().UTC().Truncate(time.Millisecond), at: map[ID]status.Proof{}}
	sh.verified = v
	if n.dir == "" {
		return
	}
	if sh.ns.core.Rule() != nil {
		name = fmt.Sprintf(verifiedOfShard, sh.set.Shard())
	}
	v.file = durable.File{Path: filepath.Join(folder.Path(n.dir, sh.ns.id), name), Kind: fmt.Sprintf("%x/%s", sh.ns.id, name), Owner: n.expected()}
	err := v.load()
	whole := err == nil && !n.renewed
	err = n.setAside(v.file.Path, err, "when the records were last proved equal to others' is not known")
	if v.file.Owner = n.owner(); !whole && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		err = v.save()
	}
	if err != nil { // the disk, or a limit of the process: the file stays as it is
		v.file.Path = ""
		n.log.Warn("when the namespace was last proved equal to others is not known from before", logNamespace(sh.ns), logError(err))
	}
}

// proved notes a sync of everything that has proved the two sides equal.
func (sh *shard) proved(id ID, differences int) {
	if err := sh.verified.note(id, sh.ns.node.now(), differences); err != nil {
		sh.ns.node.log.Warn("that a sync has proved the sets equal could not be noted for the next start", logNamespace(sh.ns), logError(err))
	}
}

// proof is the last proof that the records equal a member's, of the shards that it holds,
// too. Of several it is the one of longest ago; zero for never.
func (ns *Namespace) proof(id ID) status.Proof {
	return oldest(ns.with(id), func(sh *shard) status.Proof { return sh.verified.with(id) })
}

// lastProof is the last proof that they equal those of any member, likewise.
func (ns *Namespace) lastProof() status.Proof {
	return oldest(ns.shards(), func(sh *shard) status.Proof {
		last, _ := sh.verified.last()
		return last
	})
}

// oldest is the oldest of the shards' proofs.
func oldest(all []*shard, of func(*shard) status.Proof) (p status.Proof) {
	for i, sh := range all {
		if one := of(sh); i == 0 || one.At.Before(p.At) {
			p = one
		}
	}
	return p
}

// verifiedAge is for how long no sync has proved the records equal to another member's. Of
// several shards it is the longest. ok is false where there is no other member.
func (ns *Namespace) verifiedAge() (age time.Duration, ok bool) {
	members := ns.core.Members().Members()
	if len(members) == 1 && ID(members[0].ID) == ns.node.self.id {
		return 0, false
	}
	for _, sh := range ns.shards() {
		last, since := sh.verified.last()
		at := last.At
		if at.IsZero() {
			at = since
		}
		age = max(age, ns.node.now().Sub(at))
	}
	return age, true
}
