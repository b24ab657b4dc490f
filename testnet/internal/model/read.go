package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Found is what a read of a key at a node has come to.
type Found struct {
	Node int
	Key  string
	// Record is what was found, a tombstone too; nil: nothing. Sure says that it is final.
	Record *dbadapter.Record
	Sure   bool
	// By are the nodes that were sure.
	By []int
	// Err is why nothing is known: no host has answered.
	Err error
	// Requests is how many nodes were asked.
	Requests int
	// Nowhere: there is nothing by the locator, which rests on what the nodes of By have told.
	Nowhere bool
	found   route.Found
	// why is why hosts have not answered.
	why     map[int]error
	moved   route.Layout
	movedBy node.ID
}

// Read reads a key, at the hosts of its shard. A node that dies meanwhile tells nothing.
func (n *Node) Read(key string, told func(*Found)) {
	p := n.process
	if p == nil {
		told(&Found{Node: n.number, Key: key, Err: ErrDown})
		return
	}
	p.now(func() {
		if p.ns == nil {
			told(&Found{Node: n.number, Key: key, Err: errNoNamespace})
			return
		}
		p.routing++
		done := func(f *Found) {
			p.routing--
			told(f)
		}
		if f := p.nowhere([]byte(key)); f != nil {
			done(f)
			return
		}
		p.lookUp([]byte(key), func(f *Found) {
			if f.Record != nil {
				p.noticed([]byte(key), false)
			}
			done(f)
		})
	})
}

// lookUp finds the record under a key: here, if this node is a host that is sure, and
// otherwise at the shard's hosts; once more, if a host names a layout that is unknown here.
func (p *process) lookUp(key []byte, done func(*Found)) {
	p.lookUpAt(key, false, done)
}

// lookUpAt is lookUp; all: at all that may hold the shard.
func (p *process) lookUpAt(key []byte, all bool, done func(*Found)) {
	var gone []node.ID
	anew := false
	var once func(heeds bool)
	once = func(heeds bool) {
		p.lookUpOnce(key, all, gone, func(f *Found) {
			switch {
			case f.Err == nil && f.Sure:
				done(f)
			case !anew && f.found.Anew():
				gone, anew = f.found.Gone, true
				once(heeds)
			case !heeds:
				done(f)
			default:
				p.heed(f.why, f.moved, f.movedBy, func(heard bool) {
					if heard {
						once(false)
					} else {
						done(f)
					}
				})
			}
		})
	}
	once(true)
}

func (p *process) lookUpOnce(key []byte, all bool, gone []node.ID, done func(*Found)) {
	n := p.node
	f := &Found{Node: n.number, Key: string(key), why: map[int]error{}}
	p.flush()
	remote := p.ns.Remote(key)
	remote.Gone(gone)
	o, err := remote.GetOptions()
	o.All, o.Deadline = all, n.world.Now()+routePatience
	switch own := o.Here; {
	case err != nil:
		f.By, f.Err = []int{n.number}, err
		done(f)
		return
	case own != nil && own.Current && own.Record != nil && !all:
		f.Record, f.Sure, f.By = own.Record, true, []int{n.number}
		f.found.Record, f.found.Sure = f.Record, f.Sure
		done(f)
		return
	case own != nil && own.Settled:
		f.By = []int{n.number}
	}
	candidates := remote.Candidates(func(id node.ID) bool { return n.cluster.byID[id].Up() })
	get := route.NewGet(&p.times, candidates, o, n.world.Now())
	var open []*routed
	d := &driver{process: p, next: get.Next}
	d.ask = func(peer route.ID) {
		to := n.cluster.byID[peer].number
		ask, err := remote.AskRecord(peer)
		if err != nil {
			get.Failed(peer, err, false, n.world.Now())
			return
		}
		open = append(open, p.route(to, ask, func(m wire.Message, _ bool, err error) {
			var a route.Answer
			if err == nil {
				a, err = remote.Record(peer, ask, m)
			}
			if err != nil {
				get.Failed(peer, err, errors.Is(err, reconcile.ErrBusy), n.world.Now())
			} else {
				get.Answered(peer, a, n.world.Now())
			}
			d.run()
		}))
	}
	d.end = func(now time.Duration) {
		found, err := get.Result(now)
		for _, q := range open {
			q.cut()
		}
		f.found, f.Requests = found, found.Requests
		f.Record, f.Sure, f.moved, f.movedBy = found.Record, found.Sure, found.Moved, found.MovedBy
		for _, h := range found.Heard {
			switch {
			case h.Err != nil:
				f.why[n.cluster.byID[h.Peer].number] = h.Err
			case h.Answer != nil:
				if h.Answer.OtherList {
					f.why[n.cluster.byID[h.Peer].number] = errOtherList
				}
				if h.Answer.Host && h.Answer.Settled {
					f.By = append(f.By, n.cluster.byID[h.Peer].number)
				}
			}
		}
		if err != nil && f.Record == nil && !f.Sure {
			f.Err = fmt.Errorf("%w: %w", node.ErrUnsure, err)
		}
		done(f)
	}
	d.run()
}

var errOtherList = errors.New("it has another list of members")

// heed makes this node's list of members equal with that of a host by which the two
// disagree: it has another one, names another layout, or does not know this node. heard: it has learnt
// something.
func (p *process) heed(why map[int]error, moved route.Layout, by node.ID, done func(heard bool)) {
	c := p.node.cluster
	var ask []int
	if by != "" && p.ns.Outdated(moved) {
		ask = append(ask, c.byID[by].number)
	}
	for _, i := range slices.Sorted(maps.Keys(why)) {
		if (errors.Is(why[i], node.ErrDenied) || errors.Is(why[i], errOtherList) || errors.Is(why[i], errNoHost)) && len(ask) < 2 && !slices.Contains(ask, i) {
			ask = append(ask, i)
		}
	}
	heard := false
	var next func()
	next = func() {
		if len(ask) == 0 {
			done(heard)
			return
		}
		i := ask[0]
		ask = ask[1:]
		p.sync(p.bare(), i, p.ns.Course(c.nodes[i].id), func(err error) {
			heard = heard || err == nil || errors.Is(err, node.ErrRejected)
			next()
		})
	}
	next()
}
