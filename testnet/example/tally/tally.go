// Package tally counts things on machines that are not always connected. Say, the
// visitors at the doors of a museum, of which each has a tablet. It is an example of an
// application on package peer, and of its test on package testnettest.
//
//	doors := tally.Open(namespace, node.ID())
//	err := doors.Add(ctx, "visitors", 1)
//	n, err := doors.Total(ctx, "visitors")
//
// Of two writes to one key the later wins. If all machines counted under one key, two
// machines that are apart would each write the old count plus their own. One of the two
// would be lost. (SharedKey does so; the test shows how a test finds it.) So each
// machine counts under a key of its own, which no other machine writes. The total is
// the sum. That is a grow-only counter (Shapiro et al., "A comprehensive study of
// Convergent and Commutative Replicated Data Types", 2011, section 3.1.1).
package tally

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// Tally reads all counts and adds to those of one machine. Several goroutines may
// call its methods.
type Tally struct {
	space *peer.Namespace
	self  peer.ID
}

// Open counts in a namespace, on the node with that id.
func Open(space *peer.Namespace, self peer.ID) *Tally { return &Tally{space, self} }

// Add counts n more of what, on this machine. After an error the count may have
// been written or not: ask Total before you call Add again.
func (t *Tally) Add(ctx context.Context, what string, n uint64) error {
	if what == "" || strings.Contains(what, "/") {
		return fmt.Errorf("count %q: want a name without a slash", what)
	}
	return add(ctx, t.space, fmt.Appendf(nil, "%s/%s", what, t.self), n)
}

// Total is the sum of the counts of all machines, as far as this machine's
// records tell.
func (t *Tally) Total(ctx context.Context, what string) (uint64, error) {
	var total uint64
	for r, err := range t.space.Scan(ctx, []byte(what+"/")) {
		if err != nil {
			return 0, fmt.Errorf("total of %s: %w", what, err)
		}
		n, err := read(&r)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// add adds to the number under a key. It writes only if no other goroutine has
// written since it read, and else begins again.
func add(ctx context.Context, space *peer.Namespace, key []byte, n uint64) error {
	for {
		held, err := space.Get(ctx, key)
		if err != nil && !errors.Is(err, peer.ErrNotFound) {
			return err
		}
		count, err := read(&held)
		if err != nil {
			return err
		}
		_, err = space.PutIf(ctx, key, strconv.AppendUint(nil, count+n, 10), held.Version)
		if !errors.Is(err, peer.ErrConflict) {
			return err
		}
	}
}

// read is the number in a record; 0 without a value.
func read(r *dbadapter.Record) (uint64, error) {
	if r.Version.IsZero() {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(r.Value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the record %q holds no count: %w", r.Key, err)
	}
	return n, nil
}
