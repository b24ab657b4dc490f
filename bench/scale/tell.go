package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// told is what was found when a node was told of all keys.
type told struct {
	messages, bytes int           // to bring the locator up, headers not counted
	build           time.Duration // of the processor, for it and the index
	index, run      int           // bytes of the index; of them for changes
	disk            int64
	poll, news      int // bytes of a poll at rest, and of its answer
	event           int // bytes of a change in a news of its own
	hits, misses    int // look-ups
	wrong, asked    int // hits that are nowhere; misses that cost a request
	lookup          time.Duration
}

// folder keeps the copies of sets.
type folder string

func (f folder) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(f), name))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
}

func (f folder) Write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(string(f), name), data, 0o600)
}

// key is the i-th key that is there: its home and its index; behind -built, one that is not. The index is a hash as good as the real one.
func (o *options) key(i int) (home placement.Shard, index dbadapter.Index) {
	x := uint64(i/o.shards) + uint64(i%o.shards)<<48
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return placement.Shard(i % o.shards), dbadapter.Index((x>>22)%(keyhash.P-1) + 1)
}

// tell makes a host that has all sets, and a node that it tells of them. That many hosts
// tell them to a node changes nothing but the number of polls.
func (o *options) tell(log io.Writer) (t told, err error) {
	host := directory.NewHost(o.shards, 1)
	for home := range o.shards {
		rows := map[dbadapter.Index]bool{}
		for i := home; i < o.built; i += o.shards {
			_, index := o.key(i)
			rows[index] = true
		}
		host.Open(placement.Shard(home), func(yield func(dbadapter.Index, directory.Code) bool) {
			for _, index := range slices.Sorted(maps.Keys(rows)) {
				if !yield(index, directory.Code(home)) {
					return
				}
			}
		})
	}
	fmt.Fprintf(log, "%d keys in %d sets\n", o.built, o.shards)

	dir, err := os.MkdirTemp("", "syncd-scale-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	node, err := directory.New(directory.Config{Shards: o.shards, Seed: 1, Disk: folder(dir)})
	if err != nil {
		return t, err
	}
	const id = roster.ID("the host")
	hosts := map[placement.Shard][]roster.ID{}
	for home := range o.shards {
		hosts[placement.Shard(home)] = []roster.ID{id}
	}
	host.SetLayout(1)
	node.SetHosts(1, hosts)
	begin, now := processor(), time.Minute
	for idle := false; !idle; {
		idle = true
		if err := o.exchange(&t, host, node, id, now); err != nil {
			return t, err
		}
		for take := node.Take(id, now); take != nil; take = node.Take(id, now) {
			idle = false
			block, err := host.Block(take)
			if err != nil {
				return t, err
			}
			if err := o.count(&t, take, block); err != nil {
				return t, err
			}
			if err := node.Block(id, take, block, now); err != nil {
				return t, err
			}
		}
		if run := node.Work(); run != nil {
			idle = false
			if err := run(); err != nil {
				return t, err
			}
		}
	}
	t.build = processor() - begin
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return t, err
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			t.disk += info.Size()
		}
	}
	up := t
	if err := o.changes(&t, host, node, id, now); err != nil {
		return t, err
	}
	t.messages, t.bytes = up.messages, up.bytes
	s := node.Stats()
	t.index, t.run = s.Bytes(), s.RunBytes+s.TailBytes
	o.ask(&t, node, now)
	return t, nil
}

// exchange is a poll and its answer.
func (o *options) exchange(t *told, host *directory.Host, node *directory.Locator, id roster.ID, now time.Duration) error {
	poll := node.Poll(id)
	news := host.News(poll)
	before := t.bytes
	if err := o.count(t, poll); err != nil {
		return err
	}
	t.poll = t.bytes - before
	if err := o.count(t, news); err != nil {
		return err
	}
	t.news = t.bytes - before - t.poll
	return node.News(id, poll, news, now)
}

func (o *options) count(t *told, messages ...directory.Message) error {
	for _, m := range messages {
		data, err := directory.Append(nil, m, o.shards)
		if err != nil {
			return err
		}
		t.messages++
		t.bytes += len(data)
	}
	return nil
}

// changes makes a 32nd of the keys new: half of what the index takes before it is built anew.
func (o *options) changes(t *told, host *directory.Host, node *directory.Locator, id roster.ID, now time.Duration) error {
	n := max(1, o.built/32)
	for i := range n {
		home, index := o.key(o.built + i)
		host.Set(home, index, directory.Code(home))
		if i%directory.MaxEvents == directory.MaxEvents-1 || i == n-1 {
			if err := o.exchange(t, host, node, id, now); err != nil {
				return err
			}
		}
	}
	// New keys that the index seemed to know put their sets in doubt, until they have been read.
	for run := node.Work(); run != nil; run = node.Work() {
		if err := run(); err != nil {
			return err
		}
	}
	home, index := o.key(o.built + n)
	host.Set(home, index, directory.Code(home))
	if err := o.exchange(t, host, node, id, now); err != nil {
		return err
	}
	alone := t.news
	err := o.exchange(t, host, node, id, now) // at rest
	t.event = alone - t.news
	return err
}

// ask looks keys up that are there, and as many that are not.
func (o *options) ask(t *told, node *directory.Locator, now time.Duration) {
	n := min(o.built, 1_000_000)
	step := o.built / n
	begin := processor()
	for i := range n {
		home, index := o.key(i * step)
		t.hits++
		if node.Locate(home, index, now).Where == directory.Nowhere {
			t.wrong++
		}
		home, index = o.key(2*o.built + i*step)
		t.misses++
		if node.Locate(home, index, now).Where != directory.Nowhere {
			t.asked++
		}
	}
	t.lookup = (processor() - begin) / time.Duration(2*n)
}

// processor is the time that the process has had of processors: what others take on a busy
// machine does not count.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no such error
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
