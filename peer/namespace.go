package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

var errNotYet = errors.New("not built yet")

// Policy is what the members of a namespace agree on; it is fixed when the
// namespace is made and handed over with an invitation. The zero value is the
// safe one.
type Policy struct {
	// Unsigned turns signatures off, their making and their checking: a
	// namespace whose members trust one another not to forge. Records are
	// then accepted from members that may write themselves, only.
	Unsigned bool `json:"unsigned"`
	// MaxSkew is how far a version may be ahead of the receiver's clock.
	// 0 means DefaultMaxSkew.
	MaxSkew time.Duration `json:"max_skew"`
}

// Namespace is a set of records that this node keeps equal with the other
// members'. All its methods may be called from several goroutines. Byte slices
// passed in may be reused after the call; those returned are the caller's.
type Namespace struct {
}

// Info describes a namespace.
type Info struct {
	Name   string `json:"name"`
	ID     string `json:"id"`
	Role   Role   `json:"role"`
	Policy Policy `json:"policy"`
	// Records counts what the namespace holds, tombstones included.
	Records int64 `json:"records"`
	// Digest is the sum of the records' digests; equal sets have equal ones.
	Digest   string `json:"digest"`
	Members  int    `json:"members"`
	Rejected int    `json:"rejected"`
	// Clock is the time of the newest version held.
	Clock time.Time `json:"clock"`
}

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte            `json:"key"`
	Version dbadapter.Version `json:"-"`
	Peer    ID                `json:"peer"`
	Reason  string            `json:"reason"`
	Time    time.Time         `json:"time"`
}

// Name is the namespace's alias on this node.
func (ns *Namespace) Name() string { return "" }

// ID is the hash of the namespace's secret, by which its members know it.
func (ns *Namespace) ID() dbadapter.NamespaceID { return dbadapter.NamespaceID{} }

// Info describes the namespace as it is now.
func (ns *Namespace) Info() Info { id := ns.ID(); return Info{ID: hex.EncodeToString(id[:])} }

// Members lists the nodes that this node deals with here, itself included, by
// their ids.
func (ns *Namespace) Members() []Member { return nil }

// SetMember adds a node to this node's list of members, or gives it another
// role. The list is this node's alone: the other members keep theirs.
func (ns *Namespace) SetMember(ctx context.Context, id ID, role Role) error { return errNotYet }

// Rejected lists what was refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []Rejection { return nil }

// Put writes a record and returns its version once it is durable.
func (ns *Namespace) Put(ctx context.Context, key, value []byte) (dbadapter.Version, error) {
	return dbadapter.Version{}, errNotYet
}

// PutIf writes a record if the one held has exactly the given version; the
// zero version demands that there is none, not even a tombstone. Else it
// fails with ErrConflict.
func (ns *Namespace) PutIf(ctx context.Context, key, value []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return dbadapter.Version{}, errNotYet
}

// Delete replaces a record by a tombstone. ErrNotFound and ErrDeleted say that
// there was none to delete.
func (ns *Namespace) Delete(ctx context.Context, key []byte) (dbadapter.Version, error) {
	return dbadapter.Version{}, errNotYet
}

// DeleteIf is Delete if the record held has exactly the given version; else it
// fails with ErrConflict.
func (ns *Namespace) DeleteIf(ctx context.Context, key []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return dbadapter.Version{}, errNotYet
}

// Batch collects writes that are committed together.
type Batch struct{}

// Put adds a write to the batch.
func (b *Batch) Put(key, value []byte) {}

// PutIf adds a conditional write to the batch; see Namespace.PutIf.
func (b *Batch) PutIf(key, value []byte, held dbadapter.Version) {}

// Delete adds a tombstone to the batch, whether or not the key is there.
func (b *Batch) Delete(key []byte) {}

// DeleteIf adds a conditional tombstone to the batch.
func (b *Batch) DeleteIf(key []byte, held dbadapter.Version) {}

// Batch commits what fn adds to the batch in one atomic transaction, of at
// most dbadapter.MaxBatch writes and dbadapter.MaxBatchBytes bytes. If fn or a
// condition fails, nothing is written.
func (ns *Namespace) Batch(ctx context.Context, fn func(b *Batch) error) error { return errNotYet }

// Get returns the record under a key. ErrNotFound: there is none. ErrDeleted:
// there is a tombstone, and the record returned beside the error tells its
// version.
func (ns *Namespace) Get(ctx context.Context, key []byte) (dbadapter.Record, error) {
	return dbadapter.Record{}, errNotYet
}

// ScanOption narrows or widens a scan.
type ScanOption func(*scan)

type scan struct {
	after      []byte
	tombstones bool
}

// After starts the scan beyond a key, which need not exist.
func After(key []byte) ScanOption { return func(s *scan) { s.after = key } }

// WithTombstones includes deleted records.
func WithTombstones() ScanOption { return func(s *scan) { s.tombstones = true } }

// Scan yields the records whose keys begin with prefix, by key, as they were
// when it began. An error ends it. The namespace cannot be closed while the
// loop runs.
func (ns *Namespace) Scan(ctx context.Context, prefix []byte, options ...ScanOption) iter.Seq2[dbadapter.Record, error] {
	return func(yield func(dbadapter.Record, error) bool) { yield(dbadapter.Record{}, errNotYet) }
}

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, which then has
	// no writer: two sites that import the same dated items hold the same
	// records.
	Time time.Time
	// Deleted imports a tombstone; Value is empty.
	Deleted bool
}

// ImportResult counts what became of imported items.
type ImportResult struct {
	// Items is how many were dealt with, in order: an import that failed is
	// taken up again at item Items + 1.
	Items int64 `json:"items"`
	// Written records are new or have changed.
	Written int64 `json:"written"`
	// Unchanged items said what was there already.
	Unchanged int64 `json:"unchanged"`
	// Stale items were dated before the record that is there.
	Stale int64 `json:"stale"`
}

// Import writes items in batches, each durable in one transaction. An error
// from the sequence, or from an item, ends it: all items before are kept, and
// the result says how many those were. An unchanged value makes no new version.
func (ns *Namespace) Import(ctx context.Context, items iter.Seq2[Item, error]) (ImportResult, error) {
	return ImportResult{}, errNotYet
}

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	// Role of who joins. Default: RoleWrite.
	Role Role
	// Expires is for how long the ticket can be used. Default: 24 hours.
	Expires time.Duration
}

// Invite makes a ticket with which one node can join the namespace, once. It
// takes the role admin. The ticket is a secret: whoever presents it first
// becomes the member.
func (ns *Namespace) Invite(ctx context.Context, o InviteOptions) (string, error) {
	return "", errNotYet
}
