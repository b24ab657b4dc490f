package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A namespace that is cut into shards: what hosts and their rows promise (docs/SHARDS.md).
//
// A row says who the old and the new hosts of a shard are. The *latest* record of a key is the
// greatest that a quorum write was acknowledged with. All that is promised of it holds while a
// majority of the old hosts and one of the new have their data. If they have not, the shard is
// *void*: nothing that was acknowledged before is judged any more. If admins make two rows
// behind one, the shard is *apart*: from then on only what is so in the end is judged.

// Row is who the hosts of a shard are, as a node goes by it.
type Row struct {
	Shard  int
	Layout uint64 // the epoch of the layout that has it
	Epoch  uint64
	Name   string
	Parent string // the name of the row before; empty for the first
	Old    []int
	New    []int
	Forced bool // an admin has named the old hosts by hand
}

// later reports whether a row takes the place of another one where two nodes meet.
func (r *Row) later(o *Row) bool {
	return r.Epoch > o.Epoch || r.Epoch == o.Epoch && r.Name > o.Name
}

// shards is what is known of the shards.
type shards struct {
	home func(key string) int // nil: the namespace is not cut
	// writer: large values stay with their writers.
	writer bool
	clock  func() time.Time
	of     map[int]*shard
	// latest is, of each key, the greatest record that a quorum write was acknowledged with.
	latest greatest
	// rows are those that each node goes by, by shard.
	rows map[nodeShard]Row
	// leaving is what a node held of a shard when it began to go by a row that it is no host of.
	leaving map[nodeShard]greatest
}

type nodeShard struct{ node, shard int }

// shard is what is known of one shard.
type shard struct {
	row     Row // the latest
	known   map[string]bool
	holders map[int]bool
	// failed are the nodes that lost data, lapsed or were removed, since all new hosts were whole.
	failed map[int]bool
	// fails counts failures, voids how often it became void.
	fails, voids int
	apart        bool
}

func (s *shards) cut() bool { return s.home != nil }

// in reports whether a key belongs to what a final is about.
func (s *shards) in(f *Final, key string) bool { return !s.cut() || s.home(key) == f.Shard }

// voids says how often each shard became void.
func (s *shards) voids() map[int]int {
	if !s.cut() {
		return nil
	}
	all := map[int]int{}
	for number, of := range s.of {
		all[number] = of.voids
	}
	return all
}

// at is the shard of that number.
func (s *shards) at(number int) *shard {
	if s.of[number] == nil {
		s.of[number] = &shard{known: map[string]bool{}, holders: map[int]bool{}, failed: map[int]bool{}}
	}
	return s.of[number]
}

// Sharded notes that the namespace is cut: the shard of each key, and the latest clock of any node.
func (h *History) Sharded(home func(key string) int, clock func() time.Time) {
	h.shards = shards{home: home, clock: clock, of: map[int]*shard{}, latest: greatest{}, rows: map[nodeShard]Row{}, leaving: map[nodeShard]greatest{}}
}

// Holds notes that a node holds a shard's records.
func (h *History) Holds(node, shard int) {
	h.shards.at(shard).holders[node] = true
}

// Goes notes that a node goes by a row from now on. Rows of a shard only go back where admins
// stated layouts apart from one another, in the same epoch or later. The layout that counts
// must have gone on from an earlier row.
func (h *History) Goes(node int, row *Row) {
	s, at := h.shards.at(row.Shard), nodeShard{node, row.Shard}
	was, ok := h.shards.rows[at]
	back := ok && was.later(row)
	if s.apart = s.apart || back && row.Layout >= was.Layout; back && !s.apart {
		h.found.say(Rows, node, "", "of shard %d it went by the row of epoch %d, and goes by that of epoch %d", row.Shard, was.Epoch, row.Epoch)
	}
	if h.shards.rows[at] = *row; was.Name != row.Name {
		delete(h.shards.leaving, at)
		if !slices.Contains(row.Old, node) && !slices.Contains(row.New, node) {
			h.shards.leaving[at] = maps.Clone(h.held[node])
		}
	}
	if s.known[row.Name] {
		return
	}
	s.apart = s.apart || len(s.known) > 0 && row.Parent != s.row.Name
	s.known[row.Name] = true
	if len(s.known) == 1 || row.later(&s.row) {
		s.row = *row
	}
	if row.Forced {
		h.voided(row.Shard)
		clear(s.failed)
	}
	h.void(row.Shard) // of other hosts a majority may have failed
}

// Mended tells which nodes are members for all others, and whole by their own account. Once a
// shard is at rest, and all its hosts go by that row and are, the failures of before are over.
func (h *History) Mended(shard int, whole func(node int) bool) {
	s := h.shards.at(shard)
	if len(s.failed) > 0 && slices.Equal(s.row.Old, s.row.New) && !slices.ContainsFunc(s.row.New, func(node int) bool {
		return h.shards.rows[nodeShard{node, shard}].Name != s.row.Name || !whole(node)
	}) {
		clear(s.failed)
	}
}

// Fails notes that a node has lost what it held, was put back to a copy, has lapsed, or was
// removed. aware says that it knows. If not, it may answer as if it had all, and go by rows of
// before.
func (h *History) Fails(node int, aware bool) {
	for number, s := range h.shards.of {
		if aware && !s.holders[node] && !slices.Contains(s.row.Old, node) && !slices.Contains(s.row.New, node) {
			continue
		}
		s.fails++
		if s.failed[node] = true; aware {
			h.void(number)
		} else {
			h.voided(number)
		}
	}
}

// void makes a shard void if majorities of its hosts have failed.
func (h *History) void(number int) {
	if h.shards.at(number).broken() {
		h.voided(number)
	}
}

// broken reports whether majorities of the hosts have failed. Where rows were made apart, any host may be needed.
func (s *shard) broken() bool {
	there := func(set []int) bool {
		n := 0
		for _, node := range set {
			if !s.failed[node] {
				n++
			}
		}
		return n > len(set)/2
	}
	return len(s.failed) > 0 && (s.apart || !there(s.row.Old) || !there(s.row.New))
}

func (h *History) voided(number int) {
	h.shards.at(number).voids++
	maps.DeleteFunc(h.shards.latest, func(key string, _ stamp) bool { return h.shards.home(key) == number })
}

// Left notes that a node has dropped the records of a shard. It was found equal with a
// majority of the new hosts under the row by which it goes. So many have what it held when it
// began to go by it. What it has got since is its giver's to keep: a host's, or that of one
// who leaves as it does.
func (h *History) Left(node, number int, dump []dbadapter.Record) {
	s := h.shards.at(number)
	row := h.shards.rows[nodeShard{node, number}]
	for i := range dump {
		key, must, have := string(dump[i].Key), stampOf(&dump[i]), 0
		if was, held := h.shards.leaving[nodeShard{node, number}][key]; !held || must.beats(was) {
			continue
		}
		for _, host := range row.New {
			if h.held[host].covers(key, must) || h.left(host, key, must) || s.failed[host] || h.disks[host] > 0 {
				have++
			}
		}
		if have <= len(row.New)/2 {
			h.found.say(Handover, node, key, "it has dropped shard %d with %s, which %d of the %d new hosts have", number, must, have, len(row.New))
		}
	}
	delete(s.holders, node)
	h.forgetShard(node, number)
}

// forgetShard ends what a node must hold of a shard. What its kept log must list it goes on to list.
func (h *History) forgetShard(node, shard int) {
	for _, r := range []reference{h.held, h.gone.at, h.gone.keptOut} {
		maps.DeleteFunc(r[node], func(key string, _ stamp) bool { return h.shards.home(key) == shard })
	}
}

// restored follows a restore: the node goes by the row of the copy, and holds what that had.
func (s *shards) restored(node int) {
	for _, of := range s.of {
		delete(of.holders, node)
	}
	maps.DeleteFunc(s.rows, func(at nodeShard, _ Row) bool { return at.node == node })
}

// String names the hosts.
func (r *Row) String() string {
	return fmt.Sprintf("epoch %d, old hosts %v, new hosts %v", r.Epoch, r.Old, r.New)
}
