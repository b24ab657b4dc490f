package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
)

// each runs fn for the places at once, within the net's label.
func (n *Net) each(places []*node, fn func(*node) error) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			n.Adopt(context.Background())
			errs[i] = fn(p)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Adopt adds the calling goroutine, and all that it starts from now on, to the
// net: Close reports those that still run. To end it, give the goroutine other
// labels (runtime/pprof).
func (n *Net) Adopt(ctx context.Context) {
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels(labelKey, n.label)))
}

// Restart closes a node in an orderly way and opens it again on the same
// folder.
func (n *Net) Restart(ctx context.Context, i int) error {
	if err := n.Stop(ctx, i); err != nil {
		return err
	}
	return n.Start(ctx, i)
}

// Stop closes a node in an orderly way.
func (n *Net) Stop(ctx context.Context, i int) error {
	return n.end(ctx, "stop", i, func(r *running) error { return r.close(ctx) })
}

// Kill ends a node as the death of its process would, as far as a process that
// lives on can do so. Its connections break first, in the middle of a frame. Its
// store is never closed: the next start finds the files as they were, recovers
// them, and takes back the lock. Unlike a dead process, the node completes the
// commits that are in progress. As with a dead process, unsynced writes are not
// lost; package powercut tests power cuts.
func (n *Net) Kill(ctx context.Context, i int) error {
	return n.end(ctx, "kill", i, func(r *running) error {
		n.links.bury(i)
		return n.places[i].kill(ctx, r)
	})
}

// end ends a node that runs.
func (n *Net) end(ctx context.Context, what string, i int, how func(*running) error) error {
	p := n.places[i]
	r := p.running
	if r == nil {
		return fmt.Errorf("%s node %d: it is down already", what, i)
	}
	p.running = nil
	if err := n.each([]*node{p}, func(*node) error { return how(r) }); err != nil {
		return fmt.Errorf("%s node %d: %w", what, i, err)
	}
	p.closed = append(p.closed, r.host)
	return n.awaitGone(ctx, i)
}

// kill takes a copy of the store's files while the store is open, and puts it
// in their place.
func (p *node) kill(ctx context.Context, r *running) error {
	err := errors.Join(r.host.Close(), r.node.Close(ctx))
	if r.store == nil {
		return err
	}
	image := p.storeDir() + ".image"
	err = errors.Join(err, copyFiles(p.storeDir(), image), r.store.Close())
	if err == nil {
		err = os.RemoveAll(p.storeDir())
	}
	if err == nil {
		err = os.Rename(image, p.storeDir())
	}
	return err
}

// Start opens a node that is down.
func (n *Net) Start(ctx context.Context, i int) error {
	p := n.places[i]
	if p.running != nil {
		return fmt.Errorf("start node %d: it runs", i)
	}
	before := slices.Clone(p.listen)
	if err := n.each([]*node{p}, func(p *node) error { return n.start(ctx, p) }); err != nil {
		return err
	}
	if n.Namespace(i) == nil {
		return fmt.Errorf("start node %d: it has lost the namespace", i)
	}
	if !slices.Equal(before, p.listen) {
		n.moved = true
	}
	if !n.moved {
		return nil
	}
	for _, other := range n.places {
		if other.running != nil {
			if err := n.introduce(ctx, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitGone waits until no node counts a stopped node as connected.
func (n *Net) awaitGone(ctx context.Context, i int) error {
	var pairs [][2]int
	for j := range n.places {
		if j != i {
			pairs = append(pairs, [2]int{j, i})
		}
	}
	return n.awaitApart(ctx, pairs)
}

// Close ends all nodes and looks for leaks. It looks for goroutines that they, or
// adopted goroutines, have started, and for open files below the net's folder. In
// libp2p's resource managers it looks for connections, streams and memory in use.
func (n *Net) Close(ctx context.Context) error {
	err := n.each(n.places, func(p *node) error {
		if p.running == nil {
			return nil
		}
		r := p.running
		p.running = nil
		err := r.close(ctx)
		if r.host != nil {
			p.closed = append(p.closed, r.host)
		}
		return err
	})
	return errors.Join(err, n.leaks(ctx))
}
