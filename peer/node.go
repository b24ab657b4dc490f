package peer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/mesh"
	"github.com/syncd-io/syncd/internal/metrics"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/routing"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Node is one participant: an identity, a host, a store, and namespaces. All
// its methods may be called from several goroutines.
type Node struct {
	dir string
	// restored: the folder was made of a backup, and is opened for the first time.
	restored bool
	renewed  bool // it has a fresh key
	log      *slog.Logger
	now      func() time.Time
	limits   Limits
	self     identity
	started  time.Time
	awake    machine.Clock // since then

	host      *netio.Network
	store     dbadapter.Store
	book      *netio.Book
	noBook    bool // the file of the book was missing
	damage    *damage.Book
	metrics   *metrics.Metrics
	core      *node.Node      // decides
	places    *stream.Places  // of this node's own syncs
	running   atomic.Int64    // syncs of both sides
	asking    *stream.Places  // of this node's own questions
	routing   *routing.Routes // of this node's own routed questions
	recent    *syncing.History
	program   string // its version
	disk      disk
	health    *damage.Health
	pushes    *mesh.Mesh // nil: nothing is pushed; guarded by mu
	shards    sync.Map   // *node.Set to its *shard, of those that are open
	bandwidth *stream.Bandwidth
	engaged   engagements
	hurried   chan struct{} // holds a token when a round of background syncs is to begin at once

	ctx     context.Context // over when the node closes
	cancel  context.CancelFunc
	gate    *gate // handlers, calls and the background loop are inside
	cleanup []func() error
	closed  chan struct{}
	failed  error // of closing; to be read once closed is
	broken  chan error

	backing  sync.Mutex   // serialises backups
	changing sync.Mutex   // serialises the making and dropping of namespaces,
	mu       sync.RWMutex // guards the maps
	byName   map[string]*Namespace
	byID     map[dbadapter.NamespaceID]*Namespace
	unserved map[string]*unserved // by name
}

// Open starts a node. The context bounds the opening only; Close ends the node. The
// sketch of each namespace is taken from the summary that the store keeps, and the
// changes since are replayed. Where that cannot be, it is rebuilt by a scan, at some
// 10^5 to 10^6 records a second. A namespace whose records are damaged is not served
// (Unserved), and the others are.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Repair && cfg.Dir != "" && cfg.Store == nil {
		return openRepaired(ctx, cfg)
	}
	return open(ctx, cfg)
}

func open(ctx context.Context, cfg Config) (_ *Node, err error) {
	n := &Node{
		dir:      cfg.Dir,
		log:      cfg.Logger,
		now:      cfg.Clock,
		program:  clipProgram(cfg.Program),
		limits:   cfg.limits(),
		store:    cfg.Store,
		gate:     newGate(),
		hurried:  make(chan struct{}, 1),
		closed:   make(chan struct{}),
		broken:   make(chan error, 1),
		byName:   map[string]*Namespace{},
		byID:     map[dbadapter.NamespaceID]*Namespace{},
		unserved: map[string]*unserved{},
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.now == nil {
		n.now = time.Now
	}
	n.log = limited(n.log)
	n.started = n.now().UTC()
	n.recent = syncing.NewHistory(RecentSyncs)
	n.places = stream.NewPlaces(n.limits.Sessions, cfg.Bandwidth.ownPerPeer(n.limits))
	n.asking = stream.NewPlaces(syncing.MaxQuestionsInAll, syncing.MaxQuestions)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.routing = routing.New(n.ctx, n.openRoute)
	defer func() {
		if err != nil {
			n.shut()
			<-n.closed
		}
	}()
	if err := cfg.Bandwidth.check(); err != nil {
		return nil, fmt.Errorf("open the node: %w", err)
	}
	for _, step := range []func(context.Context, *Config) error{
		n.openStore, n.openIdentity, n.openBook, n.bookDamage, n.openNamespaces, n.openHost, n.openPushes, n.openAddrs,
	} {
		if err := step(ctx, &cfg); err != nil {
			return nil, fmt.Errorf("open the node: %w", err)
		}
	}
	for _, ns := range n.Namespaces() {
		ns.followShards()
	}
	n.onClose(func() error { n.routing.CloseIdle(); return nil })
	for id, serve := range map[protocol.ID]network.StreamHandler{
		syncProtocol: n.serveSync, joinProtocol: n.serveJoin, askProtocol: n.serveAsk, routing.Protocol: n.serveRoute,
	} {
		n.host.SetStreamHandler(id, n.serving(serve))
		n.onClose(func() error { n.host.RemoveStreamHandler(id); return nil })
	}
	n.health.Look(n.ctx)
	n.soon(func() { n.health.Run(n.ctx) })
	n.soon(n.keepSummaries)
	n.soon(n.audits)
	if cfg.SyncInterval > 0 {
		n.soon(n.background)
	}
	n.log.Info("the node is open", slog.Any("id", n.self.id), slog.Any("addrs", n.Addrs()), slog.Int("namespaces", len(n.byID)))
	return n, nil
}

// within runs a call while the node is open, and names it in an error. The context is over when
// the caller's is, or when the node closes.
func (n *Node) within(ctx context.Context, what string, run func(context.Context) error) error {
	err := ctx.Err()
	if err == nil && !n.gate.enter() {
		err = ErrClosed
	}
	if err == nil {
		defer n.gate.leave()
		ctx, cancel := bind(ctx, n.ctx)
		defer cancel()
		err = run(ctx)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// onClose adds what closing undoes; the last added is undone first.
func (n *Node) onClose(fn func() error) { n.cleanup = append(n.cleanup, fn) }

// openStore comes first: the store's lock keeps two processes off one folder.
func (n *Node) openStore(ctx context.Context, cfg *Config) (err error) {
	if n.dir != "" {
		if err := os.MkdirAll(n.dir, durable.DirMode); err != nil {
			return err
		}
		note, err := folder.ReadRestored(n.dir)
		n.renewed = folder.Renewed(n.dir)
		switch n.restored = note != nil; {
		case n.restored && errors.Is(err, ErrFileDamaged):
			n.log.Warn("this node was restored from a backup, and which one is not known: the file that says it is removed", logError(err))
		case err != nil:
			return err
		case n.restored:
			n.log.Warn("this node was restored from a backup and holds what was there then; syncs bring the rest",
				slog.Int("generation", note.Generation), slog.Time("taken", note.At()))
		}
	}
	n.openDamage()
	switch {
	case n.store != nil:
		return nil // the caller closes its own
	case n.dir == "":
		n.store = memdb.New(memdb.Options{Now: n.now, LogLimit: cfg.WatchLog})
	default:
		n.store, err = folder.OpenStore(n.dir, cfg.StoreKind, ondisk.Options{
			Logger: n.log, Now: n.now, Memory: cfg.memory() / 4, LogLimit: cfg.WatchLog, MinFree: cfg.DiskReserve,
			Damaged: func(err error) { _ = n.met(err) }, Failed: n.fail,
		})
	}
	if err != nil {
		return err
	}
	n.onClose(n.store.Close)
	return nil
}

// soon runs fn in a goroutine of its own, unless the node is closing.
func (n *Node) soon(fn func()) {
	if n.gate.enter() {
		go func() {
			defer n.gate.leave()
			fn()
		}()
	}
}

func (n *Node) openIdentity(ctx context.Context, cfg *Config) (err error) {
	key := cfg.Identity
	switch {
	case cfg.Host != nil:
		if key != nil {
			return errors.New("both a Host and an Identity are given: a host has its own")
		}
		if key = cfg.Host.Peerstore().PrivKey(cfg.Host.ID()); key == nil {
			return errors.New("the given host's key is not in its peerstore, but records are signed with it")
		}
	case key == nil && n.dir != "":
		key, err = n.ownKey(ctx)
	case key == nil:
		key, err = folder.FreshKey("")
	}
	if err == nil {
		n.self, err = newIdentity(key)
	}
	if err == nil {
		n.core = n.newCore(cfg)
		n.metrics, err = metrics.New(metrics.Config{Registerer: cfg.Registerer, Node: n.self.id.String(), Dir: n.dir, State: n.state})
	}
	if err == nil {
		n.bandwidth = stream.NewBandwidth(stream.Rates(cfg.Bandwidth), n.metrics.Waited)
	}
	if err == nil {
		n.onClose(func() error { n.metrics.Unregister(); return nil })
	}
	return err
}

// newCore gives the node's decisions the machine: its clock, its randomness, all
// its cores.
func (n *Node) newCore(cfg *Config) *node.Node {
	return node.New(node.Config{
		ID: node.ID(n.self.id), Sign: n.self.sign, SignAll: n.self.signAll,
		Now: n.now, Each: machine.Each, Turn: machine.NewTurns().Run, Aside: machine.Aside, GiveWay: runtime.Gosched, Interval: cfg.SyncInterval, Budget: reconcile.NewBudget(n.limits.SyncMemory),
		Elapsed: n.awake.Elapsed, Loaded: n.loaded,
		Random: func(node.Purpose) uint64 {
			var b [8]byte
			rand.Read(b[:]) // never fails (crypto/rand)
			return binary.BigEndian.Uint64(b[:])
		},
		NoHost: cfg.NoHost, Push: cfg.pushing(), Pushable: n.pushable, Relisted: n.relisted, Pushes: n.peerPushes,
		Doubted: func(set *node.Set, by status.DeclinedBy) {
			n.log.Warn("a peer declines what this node wrote: the records' times are ahead of its clock; is this machine's clock right? If it was wrong and is set: syncd restamp",
				slog.String("ns", set.Namespace().Members().Name()), logPeer(by.Peer), slog.Int("records", by.Records))
		},
		Paused: func(id node.ID) bool { return n.book.Paused(ID(id)) },
		Moved: func(id node.ID, addrs [][]byte) {
			if err := n.heardOf(ID(id), addrs); err != nil {
				n.log.Warn("the addresses of a member could not be saved", logPeer(ID(id)), logError(err))
			}
		},
		Places: syncing.Places{Sessions: n.limits.Sessions, PerPeer: n.limits.SessionsPerPeer, Greetings: greetings},
	})
}

// noBook is what is gone with the address book.
const noBook = "addresses that were given, and removals and pauses of peers, are gone (syncd peer ls)"

func (n *Node) openBook(context.Context, *Config) error {
	if n.dir == "" {
		n.book = netio.NewBook(nil)
		return nil
	}
	f := durable.File{Path: filepath.Join(n.dir, folder.AddressBookFile), Kind: "peers", Owner: n.expected()}
	n.book = netio.NewBook(func(note netio.BookNote) error { return folder.SaveNote(f, note) })
	var note netio.BookNote
	err := folder.LoadNote(f, &note)
	if err == nil {
		if err = n.book.Load(note); err != nil {
			err = durable.Damaged(f.Path, "is damaged (%v)", err)
		}
	}
	switch f.Owner = n.owner(); {
	case errors.Is(err, fs.ErrNotExist):
		n.noBook, err = true, nil
	case errors.Is(err, durable.ErrOwner):
		return durable.Unusable(f.Path, err, fmt.Sprintf("this node is %s; move the file away, or, if it is %s that is not the node's, %s", f.Owner, filepath.Join(n.dir, folder.KeyFile), folder.OtherKey))
	}
	if err := folder.SetAside(n.log, f.Path, err, noBook); err != nil {
		return err
	}
	return folder.Later(n.log, n.book.Save()) // that it is missing shows then
}

func (n *Node) openNamespaces(ctx context.Context, cfg *Config) error {
	n.onClose(func() error {
		var failed error
		for _, ns := range n.Namespaces() {
			failed = errors.Join(failed, ns.close())
		}
		return failed
	})
	if n.dir == "" {
		return nil
	}
	ids, dropped, err := folder.List(n.dir)
	if err != nil {
		return fmt.Errorf("find the namespaces: %w", err)
	}
	folders := []folder.Namespace{}
	for _, id := range dropped {
		finish := n.resumeDrop
		if slices.Contains(ids, id) { // joined again before the drop was finished: its records stay
			finish = func(_ context.Context, id dbadapter.NamespaceID) error { return folder.RemoveDropped(n.dir, id) }
		}
		if err := finish(ctx, id); err != nil {
			if !errors.Is(err, durable.ErrDamaged) && !errors.Is(err, ErrNoRoom) {
				return fmt.Errorf("finish dropping namespace %x: %w", id, err)
			}
			n.log.Warn("a namespace that was dropped could not be deleted, and takes up room", slog.String("ns", fmt.Sprintf("%x", id)), logError(err))
			f, _ := folder.Load(folder.DroppedPath(n.dir, id), id, "")
			folders = append(folders, f) // its sets are not offered to be joined again
		}
	}
	if n.noBook && len(ids) > 0 {
		n.log.Warn("a file is missing, and made anew: "+noBook, slog.String("file", filepath.Join(n.dir, folder.AddressBookFile)))
	}
	for _, id := range ids {
		f, err := folder.Load(folder.Path(n.dir, id), id, n.expected())
		folders = append(folders, f)
		if errors.Is(err, dbadapter.ErrFormat) {
			return fmt.Errorf("namespace %x: %w", id, err)
		}
		if err != nil {
			n.shelve(id, f, err.Error(), err)
			continue
		}
		n.missing(&f)
		f.State.Name = n.freeName(f.State.Name, id)
		if n.restored { // it may lack what the original has told the members that it holds
			f.State.Recover()
		}
		if n.restored || f.Owner != n.owner() {
			f.Owner = n.owner()
			if err := f.Save(); n.restored && err != nil || folder.Later(n.log, err) != nil {
				return err
			}
		}
		ns, err := n.openNamespace(ctx, f.Secret, f.State)
		if errors.Is(err, ErrCorrupt) {
			n.shelve(id, f, "", err)
			continue
		}
		if err != nil {
			return err
		}
		n.insert(ns)
	}
	if err := n.shelveOrphans(ctx, folders); err != nil {
		return err
	}
	if n.restored || n.renewed {
		return folder.Noticed(n.dir)
	}
	return nil
}

// ID is the node's peer id.
func (n *Node) ID() ID { return n.self.id }

// Close ends the node: running syncs are cut, what was acknowledged is
// durable. It waits until all is stopped, or the context is over; the node
// then still closes. It may be called again. A host or store given in Config
// stays open.
func (n *Node) Close(ctx context.Context) error {
	n.shut()
	select {
	case <-n.closed:
		return n.failed
	case <-ctx.Done():
		return fmt.Errorf("the node is still closing: %w", ctx.Err())
	}
}

// shut begins to close, once. The goroutine ends when all is closed.
func (n *Node) shut() {
	if !n.gate.close() {
		return
	}
	n.cancel()
	go func() {
		defer close(n.closed)
		<-n.gate.empty
		for _, ns := range n.Namespaces() {
			ns.end() // while what it uses is open: it says that the node closes, not that a connection broke
		}
		for _, fn := range slices.Backward(n.cleanup) {
			n.failed = errors.Join(n.failed, fn())
		}
		n.log.Info("the node is closed")
	}()
}

// Broken says once that the node's own store goes no further, since the system has
// refused what it cannot do without. What was acknowledged is on the disk. The node is to
// be closed, which may not end, and the program to be started again.
func (n *Node) Broken() <-chan error { return n.broken }

func (n *Node) fail(err error) {
	n.log.Error("the store goes no further: the program is to be started again", logError(err))
	select {
	case n.broken <- err:
	default: // it was said
	}
}

// Started is when the node was opened, by its clock.
func (n *Node) Started() time.Time { return n.started }

// Syncing is how many syncs are running, those of peers included.
func (n *Node) Syncing() int { return int(n.running.Load()) }
