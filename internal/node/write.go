package node

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/reconcile"
)

// Draft is one write before it has a version. If, where it is not nil, is the
// version that must be held. The zero version stands for a key that holds nothing,
// not even a tombstone or an expired record. TTL, if not 0, is for how long the
// record is to be read, by this node's clock at the write.
type Draft struct {
	Record dbadapter.Record
	If     *dbadapter.Version
	TTL    time.Duration
	// Ack, of a write to a shard, is how many hosts are to hold it; nil: a quorum.
	Ack *quorum.Level
}

// ItemError is the error of one draft of several, counted from 0. Held is the version
// that its key holds, where the condition of the draft did not hold; zero for none.
type ItemError struct {
	Item int
	Held dbadapter.Version
	Err  error
}

func (e *ItemError) Error() string { return e.Err.Error() }

// Unwrap makes it the error that it is.
func (e *ItemError) Unwrap() error { return e.Err }

// Attempt is a write on its way: Writes gives it versions and signatures, the
// driver commits them, and Judge says what came of it.
//
// Another write of this node, or a record from a peer, may overtake a version
// between its making and its commit. The version is then made anew, so a writer
// reads its own write. A batch is made anew as a whole. A driver commits it while
// it holds the set's commits alone. So only a store that was written to by other
// means can overtake it.
type Attempt struct {
	set    *Set
	drafts []Draft
	// deletes says that the one draft is a tombstone for the record that is held
	// at each try.
	deletes bool
	tries   int
	writes  []dbadapter.Write
}

// Write prepares to write drafts in one transaction. It checks them before a
// version is made; the records that Writes makes of them are checked by Hash.
func (set *Set) Write(drafts ...Draft) (*Attempt, error) {
	if len(drafts) > dbadapter.MaxBatch {
		return nil, fmt.Errorf("%w: a batch has at most %d writes", dbadapter.ErrLimit, dbadapter.MaxBatch)
	}
	for i := range drafts {
		if err := cmp.Or(drafts[i].Record.Validate(), drafts[i].CheckTTL()); err != nil {
			return nil, &ItemError{Item: i, Err: err}
		}
	}
	return &Attempt{set: set, drafts: drafts}, nil
}

// Delete prepares to replace the record under a key by a tombstone. Writes fails
// with ErrNotFound, ErrDeleted or ErrExpired where the key holds no record.
func (set *Set) Delete(key []byte) (*Attempt, error) {
	a, err := set.Write(Draft{Record: dbadapter.Record{Key: key, Deleted: true}})
	if err == nil {
		a.deletes = true
	}
	return a, err
}

// Hold takes the set's commits for the attempt: versions are made and
// committed while it is held. release gives them back.
func (a *Attempt) Hold() (release func()) {
	l, unlock := &a.set.commits, a.set.commits.Unlock
	if len(a.drafts) == 1 {
		l.single()
		unlock = l.RUnlock
	} else {
		l.Lock()
	}
	if a.set.ns.rule == nil {
		return unlock
	}
	term := a.set.tenure.term()
	return func() { a.set.tenure.entered(term); unlock() }
}

// takes says why new records do not enter the set here, or nil: those that this node
// writes, and those of pushes. Of a shard whose hosts are not known it takes them: it keeps
// them until it knows. commits is held.
func (set *Set) takes() error {
	if set.ns.rule == nil {
		return nil
	}
	if set.tenure.ended() {
		return dbadapter.ErrClosed
	}
	if host, known := set.isHost(set.ns.node.ID); known && !host {
		return ErrNotHost
	}
	return nil
}

// Writes gives the drafts versions of now and signs them.
func (a *Attempt) Writes() ([]dbadapter.Write, error) {
	a.tries++
	if err := a.set.takes(); err != nil {
		return nil, err
	}
	snap, err := a.set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	a.writes = make([]dbadapter.Write, len(a.drafts))
	key := func(i int) []byte { return a.drafts[i].Record.Key }
	holdings := holdings{
		snap: snap, keys: len(a.drafts), key: key,
		index: func(i int) dbadapter.Index { return a.set.Keys.Hasher.Index(key(i)) },
	}
	var before map[string]int // the last write of each key that the batch has so far
	if len(a.drafts) > 1 {
		before = make(map[string]int, len(a.drafts))
	}
	for i, d := range a.drafts {
		held, err := holdings.under(i)
		if err != nil {
			return nil, err
		}
		if before != nil {
			if j, ok := before[string(key(i))]; ok {
				held = &a.writes[j].Record.Record
			}
			before[string(key(i))] = i
		}
		if a.deletes {
			if d.If, err = a.set.mayDelete(held); err != nil {
				return nil, err
			}
		}
		version, err := a.set.ns.NextVersion()
		if err != nil {
			return nil, err
		}
		r := d.Record
		r.Version = version
		if d.TTL > 0 {
			r.Expires = a.set.expiry(d.TTL)
		}
		// What a record replaces is what its writer could see. A write of this node
		// that comes in between needs no mention: it has the same incarnation. Two
		// calls at once may make such a write of one key.
		r.Replace(held)
		hashed, err := dbadapter.Hash(a.set.Keys.Hasher, r)
		if err != nil {
			return nil, err
		}
		a.writes[i] = dbadapter.Write{Record: hashed, If: d.If, Must: len(a.drafts) > 1}
	}
	return a.writes, a.set.authorize(a.writes)
}

// mayDelete binds a deletion to the record that is held.
func (set *Set) mayDelete(held *dbadapter.Record) (*dbadapter.Version, error) {
	if held == nil {
		return nil, dbadapter.ErrNotFound // the caller names the key
	}
	if err := set.ns.Absent(held); err != nil {
		return nil, err
	}
	return &held.Version, nil
}

// Judge says what came of a commit. again: call Writes once more. Otherwise the
// write is done, or err says why not; then nothing is written.
func (a *Attempt) Judge(outcomes []dbadapter.Outcome, failed error) (again bool, err error) {
	single := len(a.drafts) == 1
	if failed == nil {
		a.set.written(a.writes, outcomes)
		a.set.pushes.Written(a.writes, outcomes)
	}
	for i, o := range outcomes {
		switch o.Result {
		case dbadapter.Full:
			return false, &ItemError{Item: i, Err: fmt.Errorf("%q: %w; delete some of them, or choose another key", a.drafts[i].Record.Key, refusals.ErrFull)}
		case dbadapter.Dominated: // a version came past the clock
			if _, err := a.set.ns.versionAt(hlc.Timestamp(o.Held.Clock)); err != nil {
				return false, &ItemError{Item: i, Held: o.Held, Err: err}
			}
			a.set.ns.clock.Observe(hlc.Timestamp(o.Held.Clock))
			return a.retry()
		case dbadapter.Conflict:
			switch {
			case a.deletes:
				return a.retry()
			case single:
				failed = &dbadapter.ConflictError{Held: o.Held, Free: a.drafts[i].If != nil && a.drafts[i].If.IsZero()}
			}
			return false, &ItemError{Item: i, Held: o.Held, Err: failed}
		}
	}
	return false, failed
}

func (a *Attempt) retry() (again bool, err error) {
	if a.tries < MaxAttempts {
		return true, nil
	}
	return false, fmt.Errorf("%w: another version came in between at each of %d attempts", reconcile.ErrBusy, MaxAttempts)
}

// Version is that of the i-th write.
func (a *Attempt) Version(i int) dbadapter.Version { return a.writes[i].Record.Version }

// Record is the i-th write. It must not be changed.
func (a *Attempt) Record(i int) *dbadapter.Record { return &a.writes[i].Record.Record }

// NextVersion makes a version of this node. It fails where the clock is wrong, or
// has been: every other member would refuse the version.
func (ns *Namespace) NextVersion() (dbadapter.Version, error) { return ns.versionAt(ns.clock.Read()) }

func (ns *Namespace) versionAt(at hlc.Timestamp) (dbadapter.Version, error) {
	if err := hlc.Check(at.Time(), ns.node.Now(), ns.Members().Policy().MaxSkew); err != nil {
		return dbadapter.Version{}, fmt.Errorf("%w: if this machine's clock is wrong, set it; if it was wrong when the namespace's newest version was written, restamp the namespace (syncd restamp)", err)
	}
	return dbadapter.Version{Clock: dbadapter.Timestamp(at), Writer: ns.self, Incarnation: ns.incarnation}, nil
}

// authorize signs writes of this node, if its role lets it write.
func (set *Set) authorize(writes []dbadapter.Write) error {
	if err := set.ns.MustHave(RoleWrite, "ask an admin for the role write"); err != nil {
		return err
	}
	members := set.ns.Members()
	if members.Policy().Unsigned {
		return nil
	}
	if err := set.covered(members, writes); err != nil {
		return err
	}
	if err := set.Sign(writes); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// covered refuses writes that the other members would. A role that was given anew
// begins by the clock of the admin that gave it. What this node imports is dated so
// that its role covers it.
func (set *Set) covered(members *membership.Members, writes []dbadapter.Write) error {
	for i := range writes {
		v := writes[i].Record.Version
		if v.Writer == set.ns.self && !members.MayWrite(set.ns.self, v.Clock) {
			return fmt.Errorf("%w: this node's role does not cover a write of %s: by the clock of the admin that gave the role it begins later, or is over; compare the two clocks",
				ErrDenied, v.Clock.Time().UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// lookedUp is how many keys are looked up together. What they hold may be as many
// of the largest values, which are in memory at once.
const lookedUp = 128

// holdings reads what a snapshot holds under keys, some at a time. It reads the
// buckets, and not the records. The commit has to know, too, what is there, or that
// there is nothing, and need not read it again.
type holdings struct {
	snap    dbadapter.Snapshot
	keys    int
	key     func(i int) []byte
	index   func(i int) dbadapter.Index // of the key
	read    int                         // of the keys
	indices []dbadapter.Index
	buckets map[dbadapter.Index][]dbadapter.Hashed // of the last lookedUp keys; only what is not empty
}

// under is the record held under the i-th key, or nil. The keys are asked for in their
// order.
func (h *holdings) under(i int) (*dbadapter.Record, error) {
	if i == h.read {
		if err := h.next(); err != nil {
			return nil, err
		}
	}
	if len(h.buckets) == 0 {
		return nil, nil
	}
	bucket := h.buckets[h.index(i)]
	for n := range bucket {
		if bytes.Equal(bucket[n].Key, h.key(i)) {
			return &bucket[n].Record, nil
		}
	}
	return nil, nil
}

// next reads the buckets of the next keys, all at once.
func (h *holdings) next() error {
	h.indices = h.indices[:0]
	for ; h.read < h.keys && len(h.indices) < lookedUp; h.read++ {
		h.indices = append(h.indices, h.index(h.read))
	}
	slices.Sort(h.indices)
	h.indices = slices.Compact(h.indices)
	held, err := h.snap.Buckets(h.indices)
	if err != nil {
		return err
	}
	h.buckets = nil
	for i, index := range h.indices {
		if len(held[i]) > 0 {
			if h.buckets == nil {
				h.buckets = map[dbadapter.Index][]dbadapter.Hashed{}
			}
			h.buckets[index] = held[i]
		}
	}
	return nil
}

// Present reports whether a record that is held reads as there, by this node's
// clock.
func (ns *Namespace) Present(r *dbadapter.Record) bool {
	return !r.Deleted && !r.Expired(ns.node.Now())
}

// Absent says why a record that is held reads as absent: ErrDeleted, or ErrExpired
// by this node's clock; nil if it does not. The record stays what it is: it syncs,
// and a condition on its version holds, until all members are past it.
func (ns *Namespace) Absent(r *dbadapter.Record) error {
	switch {
	case ns.Present(r):
		return nil
	case r.Deleted:
		return fmt.Errorf("%w, by version %s", dbadapter.ErrDeleted, r.Version)
	default:
		return fmt.Errorf("%w at %s, version %s", dbadapter.ErrExpired, r.Expires.Time().Format(time.RFC3339Nano), r.Version)
	}
}

// CheckTTL says what is wrong with a draft's time to live.
func (d *Draft) CheckTTL() error {
	switch {
	case d.TTL < 0:
		return fmt.Errorf("%w: a time to live of %s; it must be positive", ErrInvalid, d.TTL)
	case d.TTL > MaxTTL:
		return fmt.Errorf("%w: a time to live of %s; at most %s is allowed", dbadapter.ErrLimit, d.TTL, MaxTTL)
	case d.TTL > 0 && d.Record.Deleted:
		return fmt.Errorf("%w: a tombstone has no time to live", ErrInvalid)
	}
	return nil
}

// expiry is the first whole millisecond that is a time to live from now.
func (set *Set) expiry(ttl time.Duration) dbadapter.Timestamp {
	return dbadapter.TimestampAt(set.ns.node.Now().Add(ttl + time.Millisecond - 1))
}

// signatureDomain keeps a record's signature from meaning anything elsewhere.
const signatureDomain = "syncd record signature 1\x00"

// SignedBytes is what a writer signs: the namespace and all of the record. Each
// field of variable length is behind its length, so no byte can move from one to
// the next.
func SignedBytes(ns dbadapter.NamespaceID, r *dbadapter.Record) []byte {
	return appendSigned(make([]byte, 0, signedSize(r)), ns, r)
}

func signedSize(r *dbadapter.Record) int {
	return len(signatureDomain) + len(dbadapter.NamespaceID{}) + 4 + len(r.Key) + dbadapter.VersionSize + 1 + r.OptionalSize() + 8 + len(r.Value)
}

func appendSigned(b []byte, ns dbadapter.NamespaceID, r *dbadapter.Record) []byte {
	b = append(b, signatureDomain...)
	b = append(b, ns[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Key)))
	b = append(b, r.Key...)
	b, _ = r.Version.AppendBinary(b) // never fails
	flags := r.OptionalFlags()
	if r.Deleted {
		flags |= 1
	}
	b = r.AppendOptional(append(b, flags))
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Value)))
	return append(b, r.Value...)
}

// signedTogether is how many writes are signed together: a third of a millisecond, in
// which nothing else gets the processor.
const signedTogether = 32

// Sign signs this node's writes. A record whose version has no writer names its
// signer beside it.
func (p *Part) Sign(writes []dbadapter.Write) (failed error) {
	n := p.ns.node
	if len(writes) == 1 {
		n.Turn(func() { failed = p.signPiece(writes) })
		return failed
	}
	var mu sync.Mutex
	pieces := slices.Collect(slices.Chunk(writes, signedTogether))
	n.Each(len(pieces), func(i int) {
		if err := p.signPiece(pieces[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
	})
	return failed
}

func (p *Part) signPiece(writes []dbadapter.Write) error {
	size := 0
	for i := range writes {
		size += signedSize(&writes[i].Record.Record)
	}
	b, messages := make([]byte, 0, size), make([][]byte, len(writes))
	for i := range writes {
		start := len(b)
		b = appendSigned(b, p.Keys.ID, &writes[i].Record.Record)
		messages[i] = b[start:]
	}
	made, err := p.ns.node.signAll(messages)
	if err != nil {
		return err
	}
	for i := range writes {
		r := &writes[i].Record
		r.Signature = made[i]
		if r.Version.Writer == 0 {
			r.Signer = p.ns.self
		}
	}
	return nil
}

func (n *Node) signAll(messages [][]byte) (made [][]byte, err error) {
	if n.SignAll != nil && len(messages) > 1 {
		return n.SignAll(messages), nil
	}
	made = make([][]byte, len(messages))
	for i := range messages {
		if made[i], err = n.Sign(messages[i]); err != nil {
			return nil, err
		}
	}
	return made, nil
}
