package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/syncd-io/syncd/iblt"
)

// Flow is a TCP connection over IPv4.
type Flow struct {
	From, To netip.AddrPort
}

// pair packs a flow into a key and a value, from which it can be read back. The
// key is the source with the destination's port, the value the destination's
// address. A source has at most one connection at a time for such a key as a
// rule. Two are a key with two values. Neither is listed until one has ended,
// and they harm no other flow.
func (f Flow) pair() (x, y uint64) {
	from, to := f.From.Addr().As4(), f.To.Addr().As4()
	x = uint64(binary.BigEndian.Uint32(from[:]))<<32 | uint64(f.From.Port())<<16 | uint64(f.To.Port())
	return x, uint64(binary.BigEndian.Uint32(to[:]))
}

// flowOf is the inverse of pair.
func flowOf(x, y uint64) Flow {
	var from, to [4]byte
	binary.BigEndian.PutUint32(from[:], uint32(x>>32))
	binary.BigEndian.PutUint32(to[:], uint32(y))
	return Flow{
		From: netip.AddrPortFrom(netip.AddrFrom4(from), uint16(x>>16)),
		To:   netip.AddrPortFrom(netip.AddrFrom4(to), uint16(x)),
	}
}

// Tracker knows the open flows as long as they are few enough.
type Tracker struct{ table *iblt.Table }

// NewTracker returns a Tracker that lists so many flows but once in a million
// times. With a random
// seed, a sender that chooses its ports cannot choose cells.
func NewTracker(flows int, seed uint64) (*Tracker, error) {
	config, err := iblt.ConfigFor(flows, 1e-6)
	if err != nil {
		return nil, err
	}
	config.Seed = seed
	table, err := iblt.NewTable(config)
	if err != nil {
		return nil, err
	}
	return &Tracker{table}, nil
}

// Start notes that a flow began.
func (t *Tracker) Start(f Flow) { t.table.Insert(f.pair()) }

// End notes that a flow ended.
func (t *Tracker) End(f Flow) { t.table.Delete(f.pair()) }

// Seen is a flow, and how often its start was seen more than its end, or the
// reverse.
type Seen struct {
	Flow
	Times int
}

// List returns the flows that are open, and those whose end was seen without
// a start, in order of their sources. complete tells whether these are all.
func (t *Tracker) List() (open, orphaned []Seen, complete bool) {
	all := t.table.ListEntries()
	return seen(all.Inserted), seen(all.Deleted), all.Complete
}

func seen(entries []iblt.Entry) []Seen {
	var flows []Seen
	for _, e := range entries {
		flows = append(flows, Seen{flowOf(e.Key, e.Value), e.Count})
	}
	slices.SortFunc(flows, func(a, b Seen) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	return flows
}

func (s Seen) String() string {
	times := ""
	if s.Times > 1 {
		times = fmt.Sprintf(" (%d times)", s.Times)
	}
	return fmt.Sprintf("%v → %v%s", s.From, s.To, times)
}
