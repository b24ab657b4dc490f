package route

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// An asker whose list, like that of one host, is an old one is not sure of what that host says: another one has
// told it of a later list, by which there may be hosts that it does not know.
func TestOtherListLeavesOpen(t *testing.T) {
	var times Times
	g := NewGet(&times, []Candidate{{ID: peerID(0), Connected: true}, {ID: peerID(1), Connected: true}}, GetOptions{Deadline: 10 * time.Second}, 0)
	answers := map[ID]Answer{
		peerID(0): {Host: true, Settled: true},
		peerID(1): {OtherList: true, Layout: Layout{Epoch: 3}},
	}
	for s := g.Next(0); s.Do == Ask; s = g.Next(0) {
		g.Answered(s.Peer, answers[s.Peer], 0)
	}
	f, err := g.Result(0)
	if f.Sure {
		t.Errorf("sure of nothing, though %d is the epoch of a layout that it was told of: %v", f.Moved.Epoch, err)
	}
}

// A record that one host gives is not sure where another one holds nothing, and has collected deletions of as late.
func TestCollectedDeletionLeavesOpen(t *testing.T) {
	for floor, sure := range map[dbadapter.Timestamp]bool{2: true, 3: false, 4: false} {
		var times Times
		candidates := []Candidate{{ID: peerID(0), Connected: true}, {ID: peerID(1), Connected: true}}
		g := NewGet(&times, candidates, GetOptions{Deadline: 10 * time.Second, All: true}, 0)
		answers := map[ID]Answer{peerID(0): {Host: true, Settled: true, Record: version(3)}, peerID(1): {Host: true, Settled: true, Floor: floor}}
		for s := g.Next(0); s.Do == Ask; s = g.Next(0) {
			g.Answered(s.Peer, answers[s.Peer], 0)
		}
		if f, err := g.Result(0); err != nil || f.Sure != sure || f.Anew() == sure {
			t.Errorf("collected up to %d: %+v, %v", floor, f, err)
		}
	}
}

// A host of before that still holds the shard, and has collected deletions of as late as the record, leaves open
// whether it was deleted, as a host does.
func TestCollectedAtAHostOfBefore(t *testing.T) {
	var times Times
	candidates := []Candidate{{ID: peerID(0), Connected: true}, {ID: peerID(1), Former: true}}
	g := NewGet(&times, candidates, GetOptions{Deadline: 10 * time.Second, All: true}, 0)
	answers := map[ID]Answer{
		peerID(0): {Host: true, Settled: true, Record: version(3)},
		peerID(1): {Holds: true, Floor: dbadapter.Timestamp(4)},
	}
	for s := g.Next(0); s.Do == Ask; s = g.Next(0) {
		g.Answered(s.Peer, answers[s.Peer], 0)
	}
	if f, err := g.Result(0); err != nil || f.Sure || !f.Anew() {
		t.Errorf("%+v, %v", f, err)
	}
}

// An expired record that one host has collected, and another one not yet, reads as expired for sure.
func TestExpiredAndCollected(t *testing.T) {
	var times Times
	candidates := []Candidate{{ID: peerID(0), Connected: true}, {ID: peerID(1), Connected: true}}
	g := NewGet(&times, candidates, GetOptions{Deadline: 10 * time.Second, All: true}, 0)
	r := version(3)
	r.Expires = 4
	answers := map[ID]Answer{peerID(0): {Host: true, Settled: true, Current: true, Record: r}, peerID(1): {Host: true, Settled: true, Current: true, Floor: 5}}
	for s := g.Next(0); s.Do == Ask; s = g.Next(0) {
		g.Answered(s.Peer, answers[s.Peer], 0)
	}
	if f, err := g.Result(0); err != nil || !f.Sure {
		t.Errorf("%v %v, %s", f.Sure, err, f.Doubt)
	}
}
