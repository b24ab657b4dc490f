package model

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

var summaryWrites = flag.Int("summaries.writes", 100_000, "writes of TestSummaries")

var summarySeed = flag.Uint64("summaries.seed", uint64(time.Now().UnixNano()), "seed of TestSummaries")

// trial is a node over one simulated disk, with a map of what it has acknowledged.
type trial struct {
	testing.TB
	random *rand.Rand
	every  int // changes from one summary to the next
	disk   *sim.Disk
	left   int // writes and syncs of the disk until the process dies; 0: it lives on
	state  *node.State
	secret dbadapter.Secret
	old    *sim.Disk // a copy with an older summary
	now    time.Duration

	ns      *node.Namespace
	core    *node.Node
	store   *store
	how     node.Loading // of the last start
	acked   map[string]dbadapter.Version
	deaths  int
	damaged bool // the summary on the disk
}

func newTrial(t testing.TB, seed, number uint64) *trial {
	x := &trial{TB: t, random: rand.New(rand.NewPCG(seed, number)), every: 40 << (2 * (number % 3)), acked: map[string]dbadapter.Version{}}
	x.disk = sim.NewDisk(sim.New(seed^number), 0)
	x.disk.Before = x.step
	x.secret = dbadapter.Secret{1}
	x.start()
	return x
}

func (x *trial) step() {
	if x.left == 0 {
		return
	}
	if x.left--; x.left == 0 {
		panic(struck{})
	}
}

// start opens the namespace from the disk, and compares what it keeps with what a
// scan gives.
func (x *trial) start() {
	x.core = node.New(node.Config{
		ID: node.IDOf(keyOf(0).Public().(ed25519.PublicKey)), Now: func() time.Time { return Epoch.Add(x.now) },
		Sign:      func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(0), message), nil },
		Weaken:    func(h dbadapter.Hasher) dbadapter.Hasher { return &weak{Hasher: h, indices: 500} },
		Random:    func(node.Purpose) uint64 { return x.random.Uint64() },
		Summaries: node.Summaries{Least: -1, Every: x.every, Idle: x.every / 4, Rest: time.Second},
		Loaded: func(_ string, l node.Loading) {
			if !l.Control {
				x.how = l
			}
		},
	})
	if x.state == nil {
		var err error
		if x.state, err = x.core.Found(x.secret, "trial", node.Policy{Unsigned: true, MaxSkew: time.Hour}); err != nil {
			x.Fatal(err)
		}
	}
	var err error
	x.ns, err = x.core.Open(context.Background(), node.Opening{
		Secret: x.secret, State: x.state, Save: func(s *node.State) error { x.state = s; return nil },
		Store: func(_ context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
			name := ""
			if id != dbadapter.NamespaceIDOf(x.secret, x.state.Creator) {
				name = "control-"
			}
			s, err := openStore(x.disk, name, id, h, logOptions{id: 1}, func() time.Time { return Epoch.Add(x.now) }, observe)
			if err != nil {
				return nil, err
			}
			if s.admitted = func() {}; name == "" {
				x.store = s
			}
			return s, nil
		},
	})
	if err != nil {
		x.Fatal(err)
	}
	x.check()
}

// check compares the live state with one that is computed anew, and the records with
// those that were acknowledged.
func (x *trial) check() {
	x.Helper()
	snap, err := x.store.Snapshot()
	if err != nil {
		x.Fatal(err)
	}
	defer snap.Close()
	held := 0
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		if err != nil {
			x.Fatal(err)
		}
		if at, ok := x.acked[string(r.Key)]; ok && r.Version.Compare(at) < 0 {
			x.Fatalf("%s is held as of %v, and %v was acknowledged", r.Key, r.Version, at)
		} else if ok {
			held++
		}
	}
	if held != len(x.acked) {
		x.Fatalf("%d of %d acknowledged records are held", held, len(x.acked))
	}
	anew := replica.New(x.ns.Sets()[0].Keys)
	if err := anew.Load(context.Background(), snap, nil); err != nil {
		x.Fatal(err)
	}
	wantSeq, want := anew.Summary()
	gotSeq, got := x.ns.Sets()[0].Live.Summary()
	if gotSeq != wantSeq || !slices.Equal(got, want) {
		x.Fatalf("after a start with %+v, change %d, the state is another one than that of the records, change %d", x.how, gotSeq, wantSeq)
	}
}

// write commits a few records, some of them deletions or removals.
func (x *trial) write() (writes int) {
	ctx := context.Background()
	var batch []dbadapter.Write
	for range 1 + x.random.IntN(20) {
		x.now += time.Millisecond
		key := fmt.Sprint(x.random.IntN(2000))
		r := dbadapter.Record{Key: []byte(key), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(Epoch.Add(x.now)), Writer: 1}}
		if r.Deleted = x.random.IntN(8) == 0; !r.Deleted {
			r.Value = fmt.Append(nil, x.now)
		}
		hashed, err := dbadapter.Hash(x.ns.Sets()[0].Keys.Hasher, r)
		if err != nil {
			x.Fatal(err)
		}
		batch = append(batch, dbadapter.Write{Record: hashed})
	}
	if _, err := x.store.Apply(ctx, batch); err != nil {
		x.Fatal(err)
	}
	for i := range batch {
		x.acked[string(batch[i].Record.Key)] = batch[i].Record.Version
	}
	return len(batch)
}

// collect removes a record, and acknowledges that.
func (x *trial) collect() {
	key := fmt.Sprint(x.random.IntN(2000))
	r, err := x.store.snapshotGet(key)
	if errors.Is(err, dbadapter.ErrNotFound) {
		return
	}
	if err != nil {
		x.Fatal(err)
	}
	hashed, err := dbadapter.Hash(x.ns.Sets()[0].Keys.Hasher, r)
	if err != nil {
		x.Fatal(err)
	}
	delete(x.acked, key) // it may be gone from here on
	if _, err := x.store.Apply(context.Background(), []dbadapter.Write{{Record: hashed, Action: dbadapter.Collect}}); err != nil {
		x.Fatal(err)
	}
}

func (s *store) snapshotGet(key string) (dbadapter.Record, error) {
	snap, err := s.Snapshot()
	if err != nil {
		return dbadapter.Record{}, err
	}
	defer snap.Close()
	return snap.Get([]byte(key))
}

// live runs until so many writes are done, or the process dies.
func (x *trial) live(writes int) (done int) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case struck:
			x.left = 0
			x.deaths++
		default:
			panic(r)
		}
	}()
	for done < writes {
		switch x.random.IntN(12) {
		case 0:
			x.collect()
		case 1:
			x.now += 2 * time.Second
			fallthrough
		case 2:
			if err := x.core.KeepSummaries(context.Background(), x.now); err != nil {
				x.Fatal(err)
			}
		default:
			done += x.write()
		}
	}
	return done
}

// damage does something to the summary on the disk.
func (x *trial) damage() (what string) {
	file := x.store.summary
	b := slices.Clone(file.Bytes())
	if x.damaged || len(b) == 0 {
		return ""
	}
	switch x.random.IntN(4) {
	case 0:
		what, b = "damaged", b[:1+x.random.IntN(len(b)-1)]
	case 1:
		what, b = "lost", nil
	case 2:
		what = "damaged"
		b[x.random.IntN(len(b))] ^= 1 << x.random.IntN(8)
	case 3:
		if x.old == nil {
			return ""
		}
		what, b = "older", x.old.File("summary").Bytes()
	}
	if err := file.Replace(b); err != nil {
		x.Fatal(err)
	}
	return what
}

// Random writes and removals are followed by crashes at any step of what the process
// does to its disk, and by damage to the summary; each start has the state that its
// records give, and says whether it took up the summary.
func TestSummaries(t *testing.T) {
	writes, each, life := *summaryWrites, 6000, 1500
	if testing.Short() {
		writes, each, life = 30_000, 3000, 600
	}
	t.Logf("-summaries.seed %d", *summarySeed)
	deaths, resumed, scanned := 0, 0, map[string]int{}
	for number := uint64(0); writes > 0; number++ {
		x := newTrial(t, *summarySeed, number)
		for left := each; left > 0; {
			x.left = 1 + x.random.IntN(life)
			done := x.live(1 + x.random.IntN(min(left, life)))
			left -= done
			writes -= done
			x.left = 0
			if x.random.IntN(4) == 0 {
				if err := x.ns.Rest(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			x.disk.PowerCut()
			what := ""
			if x.random.IntN(4) == 0 {
				what = x.damage()
			} else if x.random.IntN(4) == 0 && !x.damaged { // an older one is whole
				x.old = x.disk.Copy()
			}
			x.start()
			why := x.how.Scanned
			switch {
			case what == "lost" && !errors.Is(why, dbadapter.ErrNotFound), what == "damaged" && !errors.Is(why, dbadapter.ErrCorrupt):
				t.Fatalf("the summary is %s, and the start says %v", what, why)
			case what == "older" && why != nil && !errors.Is(why, dbadapter.ErrNotFound):
				t.Fatalf("an older summary gives %v", why)
			case what == "" && !x.damaged && errors.Is(why, dbadapter.ErrCorrupt):
				t.Fatalf("after a crash alone: %v", why)
			}
			x.damaged = why != nil && (x.damaged || what == "damaged") // until a new one is kept
			if why == nil {
				resumed++
			} else {
				scanned[what]++
			}
		}
		deaths += x.deaths
	}
	t.Logf("%d deaths in the midst of work; %d starts by a summary, by a scan %v", deaths, resumed, scanned)
	if deaths < 5 || resumed < 20 || scanned["damaged"] == 0 {
		t.Error("too few of a kind to tell")
	}
}

// A summary of other keys, or of another mapping of pairs to cells, is not taken up:
// the start reads all records instead.
func TestSummaryOfAnother(t *testing.T) {
	for what, of := range map[string]func(own, other []byte) []byte{
		"another namespace": func(_, other []byte) []byte { return other },
		"the mapping before": func(own, _ []byte) []byte {
			own[1]--       // its version
			own[1000] ^= 1 // of a cell: what that mapping puts into it is not what this one does
			return own
		},
	} {
		t.Run(what, func(t *testing.T) {
			x := newTrial(t, 1, 0)
			x.live(200)
			seq, own := x.ns.Sets()[0].Live.Summary()
			_, other := replica.New(reconcile.DeriveKeys(dbadapter.Secret{2}, nil)).Summary()
			summary := append(of(own, other), 0) // without a note of what waits
			if err := x.store.SaveSummary(context.Background(), seq, summary); err != nil {
				t.Fatal(err)
			}
			x.start()
			if !errors.Is(x.how.Scanned, replica.ErrSummary) {
				t.Errorf("the summary is taken up: %+v", x.how)
			}
		})
	}
}
