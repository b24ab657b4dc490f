package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
)

// addresses are where a member can be dialled, as it says in its record.
type addresses struct {
	Addrs [][]byte `cbor:"1,keyasint"` // multiaddrs in binary, without the member's id
	// Unpledged: the member makes no pledges (unpledged.go).
	Unpledged bool `cbor:"2,keyasint,omitempty"`
}

// readAddresses checks what a member says.
func readAddresses(value []byte) (a addresses, err error) {
	if err := strict.Unmarshal(value, &a); err != nil {
		return a, err
	}
	if len(a.Addrs) > MaxAddrs {
		return a, fmt.Errorf("%d addresses; at most %d", len(a.Addrs), MaxAddrs)
	}
	for _, addr := range a.Addrs {
		if len(addr) > MaxAddrSize {
			return a, fmt.Errorf("an address of %d bytes; at most %d", len(addr), MaxAddrSize)
		}
	}
	return a, nil
}

// Announce tells the other members where this node can be dialled, unless it has
// told them so already.
func (ns *Namespace) Announce(ctx context.Context, addrs [][]byte) error {
	addrs = slices.Clone(addrs[:min(len(addrs), MaxAddrs)])
	slices.SortFunc(addrs, slices.Compare)
	value, err := cbor.Marshal(addresses{Addrs: addrs})
	if err != nil {
		return err
	}
	// This program makes pledges, whatever had its identity before. The record of that is
	// overwritten only once the recovery that it calls for is durable.
	if err := ns.recoverUnpledged(); err != nil {
		return err
	}
	if err := ns.say(ctx, controlKey(kindAddresses, ns.node.ID), value); err != nil {
		return err
	}
	ns.updating.Lock()
	defer ns.updating.Unlock()
	return ns.hearUnpledged(ns.node.ID, false)
}

// recoverUnpledged begins a recovery in all sets if a client had this node's identity: the
// members have gone on without what is here.
func (ns *Namespace) recoverUnpledged() (failed error) {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.pledges(ns.node.ID) {
		return nil
	}
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.gc.Update(func(w *watermark.Watermark) bool { w.Recover(false); return true }))
	}
	return failed
}

// Addresses are where the other members say that they can be dialled.
func (ns *Namespace) Addresses(ctx context.Context) ([]Addresses, error) {
	snap, err := ns.Control.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	var list []Addresses
	for _, m := range ns.Members().Members() {
		if m.ID == ns.node.ID {
			continue
		}
		r, err := snap.Get(controlKey(kindAddresses, m.ID))
		if errors.Is(err, dbadapter.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a, err := readAddresses(r.Value); err == nil { // the admission has read it before
			list = append(list, Addresses{m.ID, a.Addrs})
		}
	}
	return list, nil
}
