package testnettest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// recorder sees each commit to the shared namespace, between the nodes and their
// stores. So all that an application does with its *peer.Namespace is in the history.
// It cannot see a node that answers without asking its store; package peer's tests
// check that.
type recorder struct {
	mu      sync.Mutex // guards what follows
	history *check.History
	shared  dbadapter.NamespaceID
	known   map[writing]bool
	// time counts commits; last is the last record observed of a key.
	time uint64
	last map[place]sighting
}

// writing names a record that a node has made. The version of a dated import is
// only its date.
type writing struct {
	key     string
	version dbadapter.Version
	content [32]byte
}

type place struct {
	node int
	key  string
}

type sighting struct {
	version dbadapter.Version
	time    uint64
}

func newRecorder() *recorder {
	return &recorder{history: check.New(), known: map[writing]bool{}, last: map[place]sighting{}}
}

// tell tells the history something.
func (r *recorder) tell(what func(h *check.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(r.history)
}

// recordedStore is a store whose commits are recorded.
type recordedStore struct {
	dbadapter.Store
	recorder *recorder
	node     int
	writer   *atomic.Uint64
}

// Namespace implements dbadapter.Store.
func (s *recordedStore) Namespace(ctx context.Context, id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, hasher, observe)
	if err != nil {
		return nil, err
	}
	if !s.recorder.share(id) {
		return ns, nil
	}
	// Writers cannot reach the namespace yet: its records are those of the start.
	held, err := everything(ctx, ns)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	s.recorder.tell(func(h *check.History) { h.Started(s.node, held) })
	return &recordedNamespace{ns, s}, nil
}

// share reports whether a namespace is the shared one: the first that any node
// opens.
func (r *recorder) share(id dbadapter.NamespaceID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shared == (dbadapter.NamespaceID{}) {
		r.shared = id
	}
	return id == r.shared
}

func everything(ctx context.Context, ns dbadapter.Namespace) (all []dbadapter.Record, err error) {
	snap, err := ns.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return nil, err
		}
		all = append(all, r.Record)
	}
	return all, nil
}

type recordedNamespace struct {
	dbadapter.Namespace
	store *recordedStore
}

// Apply implements dbadapter.Namespace.
func (n *recordedNamespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	r := n.store.recorder
	ops, began := n.intend(writes)
	outcomes, err := n.Namespace.Apply(ctx, writes)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range writes {
		record := &writes[i].Record.Record
		written := err == nil && (outcomes[i].Result == dbadapter.Applied || outcomes[i].Result == dbadapter.Same)
		// A store that fails may still have written: the history gets no outcome.
		refused := err == nil || errors.Is(err, dbadapter.ErrConflict) || errors.Is(err, dbadapter.ErrLimit)
		switch op, own := ops[i]; {
		case own && written:
			r.history.Acknowledge(op, record.Version)
		case own && refused:
			r.history.Refuse(op)
		}
		if written {
			r.observe(n.store.node, record, began)
		}
	}
	return outcomes, err
}

// intend notes the writes that this node has made. They have its writer id, or
// are dated imports without one; a dated record that another node has made before
// is an arrival.
func (n *recordedNamespace) intend(writes []dbadapter.Write) (own map[int]check.Op, began uint64) {
	r := n.store.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time++
	writer := dbadapter.WriterID(n.store.writer.Load())
	own = map[int]check.Op{}
	for i := range writes {
		record := &writes[i].Record.Record
		name := writing{string(record.Key), record.Version, record.ContentHash()}
		if (record.Version.Writer == writer || record.Version.Writer == 0) && !r.known[name] {
			r.known[name] = true
			own[i] = r.history.Intend(n.store.node, name.key, record.Deleted, record.Value)
			if record.Expires != 0 {
				r.history.Expiring(own[i])
			}
		}
	}
	return own, r.time
}

// observe tells the history that a node held a record. Concurrent commits may call
// it in another order: it ignores a record older than one noted while its commit
// ran. r.mu is held.
func (r *recorder) observe(node int, record *dbadapter.Record, began uint64) {
	r.time++
	at := place{node, string(record.Key)}
	last, seen := r.last[at]
	if seen && last.version.Compare(record.Version) > 0 && last.time > began {
		return
	}
	r.last[at] = sighting{record.Version, r.time}
	r.history.Observe(node, record)
}
