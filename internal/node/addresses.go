package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// addresses are where a member can be dialled, as it says in its record.
type addresses struct {
	Addrs [][]byte `cbor:"1,keyasint"` // multiaddrs in binary, without the member's id
}

// readAddresses checks what a member says.
func readAddresses(value []byte) ([][]byte, error) {
	var a addresses
	if err := strict.Unmarshal(value, &a); err != nil {
		return nil, err
	}
	if len(a.Addrs) > MaxAddrs {
		return nil, fmt.Errorf("%d addresses; at most %d", len(a.Addrs), MaxAddrs)
	}
	for _, addr := range a.Addrs {
		if len(addr) > MaxAddrSize {
			return nil, fmt.Errorf("an address of %d bytes; at most %d", len(addr), MaxAddrSize)
		}
	}
	return a.Addrs, nil
}

// Announce tells the other members where this node can be dialled, unless it has
// told them so already.
func (ns *Namespace) Announce(ctx context.Context, addrs [][]byte) error {
	addrs = slices.Clone(addrs[:min(len(addrs), MaxAddrs)])
	slices.SortFunc(addrs, slices.Compare)
	value, err := cbor.Marshal(addresses{addrs})
	if err != nil {
		return err
	}
	return ns.say(ctx, controlKey(kindAddresses, ns.node.ID), value)
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
		if addrs, err := readAddresses(r.Value); err == nil { // the admission has read it before
			list = append(list, Addresses{m.ID, addrs})
		}
	}
	return list, nil
}
