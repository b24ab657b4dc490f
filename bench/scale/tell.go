package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// told is what was found when a node was told of all keys.
type told struct {
	messages, bytes int           // to bring the locator up, headers not counted
	build           time.Duration // of the processor, for it and the index
	index, exact    int           // bytes of the index; of them for changes
	disk            int64
	hosts           int // that are polled
	poll            int // bytes of all polls at rest, and of their answers
	event           int // bytes of a change in a news of its own
	move            int // bytes to follow all sets at other hosts
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

// host has all sets, with a log of what is new. The hosts of a set have the same keys.
type host struct {
	log   uint64
	sets  [][]locator.Entry
	fresh [][]locator.Entry
}

// answer is what it says to a question.
func (h *host) answer(m locator.Message) locator.Message {
	switch m := m.(type) {
	case *locator.Poll:
		n := &locator.News{}
		room := locator.MaxChanges
		for _, since := range m.Sets {
			said := locator.SetNews{}
			switch fresh := h.fresh[since.Set]; {
			case since.Log != h.log:
				said.Said = locator.OtherLog
			case int(since.Seq) < len(fresh) && room > 0:
				said.Said, said.To = locator.Changed, min(uint64(len(fresh)), since.Seq+uint64(room))
				said.Changes = slices.Sorted(slices.Values(fresh[since.Seq:said.To]))
				said.More = int(said.To) < len(fresh)
				room -= len(said.Changes)
			}
			n.Sets = append(n.Sets, said)
		}
		return n
	case *locator.Take:
		all := h.sets[m.Set]
		i, _ := slices.BinarySearch(all, locator.NewEntry(m.From, 0))
		upto, _ := slices.BinarySearch(all, locator.NewEntry(m.Upto, 0))
		p := &locator.Page{Log: h.log, Equal: m.Upto != 0 && locator.HashOf(all[i:upto]) == m.Hash}
		if j := i + locator.MaxPage; !p.Equal && j < len(all) {
			p.Next, p.Entries = all[j].Index(), all[i:j]
		} else if !p.Equal {
			p.Entries = all[i:]
		}
		return p
	}
	panic("no question")
}

// tell makes hosts, and a node that follows all sets at some of them.
func (o *options) tell(log io.Writer, rows [][]roster.ID) (t told, err error) {
	h := &host{log: 1, sets: make([][]locator.Entry, o.shards), fresh: make([][]locator.Entry, o.shards)}
	for s := range o.shards {
		for i := s; i < o.built; i += o.shards {
			set, index := o.key(i)
			h.sets[s] = append(h.sets[s], locator.NewEntry(index, locator.Code(set)))
		}
		slices.Sort(h.sets[s])
		h.sets[s] = slices.Compact(h.sets[s])
	}
	fmt.Fprintf(log, "%d keys in %d sets\n", o.built, o.shards)

	dir, err := os.MkdirTemp("", "syncd-scale-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	index, err := locator.Open(locator.Config{Shards: o.shards, Seed: 1, Disk: folder(dir)})
	if err != nil {
		return t, err
	}
	epoch := byte(1)
	f := locator.NewFollower(index, locator.Net{
		Self: "the node",
		Row:  func(set placement.Shard) locator.Row { return locator.Row{Name: quorum.Name{epoch}, Hosts: rows[set]} },
		Mark: func(...placement.Shard) locator.Mark { return locator.Mark{} },
	})
	now := time.Minute
	// follow lets time pass until all sets are heard.
	follow := func() error {
		for busy := true; busy || f.Unheard(now) > 0; now += 500 * time.Millisecond {
			busy = false
			for s := range o.shards {
				at, _ := index.Place(placement.Shard(s))
				busy = busy || at.Log != h.log
			}
			for _, turn := range f.Turns(now) {
				for m := turn.Next(now); m != nil; m = turn.Next(now) {
					answer := h.answer(m)
					if err := o.count(&t, m, answer); err != nil {
						return err
					}
					turn.Answered(answer, nil, now)
				}
			}
			if run := index.Work(f.Fetching()); run != nil {
				busy = true
				if err := run(); err != nil {
					return err
				}
			}
			f.Locate(0, 1, now)
		}
		return nil
	}
	begin := processor()
	if err := follow(); err != nil {
		return t, err
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
	hosts := map[roster.ID]bool{}
	for s := range o.shards {
		hosts[f.Status(placement.Shard(s), now).Host] = true
	}
	t.hosts = len(hosts)
	// A poll of each, without news and with a change.
	rest := func() (int, error) {
		now += locator.PollBusy
		before := t.bytes
		err := follow()
		return t.bytes - before, err
	}
	if t.poll, err = rest(); err != nil {
		return t, err
	}
	n := max(1, o.built/32)
	for i := range n {
		set, index := o.key(o.built + i)
		h.fresh[set] = append(h.fresh[set], locator.NewEntry(index, locator.Code(set)))
	}
	many, err := rest()
	if err != nil {
		return t, err
	}
	t.event = (many - t.poll + n - 1) / n
	s := index.Stats()
	t.index, t.exact = s.Bytes(), s.ExactBytes+s.ChangedBytes
	o.ask(&t, f, now)

	for s := range h.sets { // the same keys at other hosts, with other logs
		h.sets[s] = slices.Sorted(slices.Values(slices.Concat(h.sets[s], h.fresh[s])))
		h.sets[s], h.fresh[s] = slices.Compact(h.sets[s]), nil
	}
	h.log++
	if t.move, err = rest(); err != nil {
		return t, err
	}
	t.messages, t.bytes = up.messages, up.bytes
	return t, nil
}

func (o *options) count(t *told, messages ...locator.Message) error {
	for _, m := range messages {
		data, err := locator.Append(nil, m, o.shards)
		if err != nil {
			return err
		}
		t.messages++
		t.bytes += len(data)
	}
	return nil
}

// ask looks keys up that are there, and as many that are not.
func (o *options) ask(t *told, f *locator.Follower, now time.Duration) {
	n := min(o.built, 1_000_000)
	step := o.built / n
	begin := processor()
	for i := range n {
		home, index := o.key(i * step)
		t.hits++
		if where, _ := f.Locate(home, index, now); where == locator.Nowhere {
			t.wrong++
		}
		home, index = o.key(2*o.built + i*step)
		t.misses++
		if where, _ := f.Locate(home, index, now); where != locator.Nowhere {
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
