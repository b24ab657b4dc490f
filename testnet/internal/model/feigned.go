package model

import (
	"context"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// feigned is what a modified program tells of the keys that it hosts: all of it fits together,
// sums and events too, but for some keys it is not so. What this node's own locator is told is true.
type feigned struct {
	host *directory.Host
	told map[placement.Shard]map[dbadapter.Index]directory.Code
}

// Mislead has the node tell from now on that a key is there, of which it holds nothing; or that a
// key is not there that it holds. It matters where the node is a host of the key.
func (n *Node) Mislead(key string, there bool) {
	if n.misleads == nil {
		n.misleads = map[string]bool{}
	}
	n.misleads[key] = there
}

// feign replaces the true answer to a question about the feed, if the node misleads.
func (p *process) feign(ask *wire.Ask, reply *wire.Reply) {
	q, feed := ask.Question.(*wire.AskFeed)
	if !feed || p.node.misleads == nil {
		return
	}
	shards := p.ns.Rule().Shards
	m, err := directory.Parse(q.Message, shards)
	if err != nil {
		panic(err) // it was answered
	}
	var answer directory.Message
	switch m := m.(type) {
	case *directory.Poll:
		answer = p.feignedHost().News(m)
	case *directory.Take:
		block, err := p.feignedHost().Block(m)
		if err != nil {
			reply.Answer = &wire.FeedAnswer{}
			return
		}
		answer = block
	}
	message, err := directory.Append(nil, answer, shards)
	if err != nil {
		panic(err)
	}
	reply.Answer = &wire.FeedAnswer{Message: message}
}

// feignedHost is what tells it, as of now.
func (p *process) feignedHost() *directory.Host {
	f := p.feigned
	if f == nil {
		f = &feigned{host: directory.NewHost(p.ns.Rule().Shards, p.draw(node.ForNonce)|1), told: map[placement.Shard]map[dbadapter.Index]directory.Code{}}
		p.feigned = f
	}
	truth, err := p.ns.Tell(context.Background(), &directory.Poll{All: true}, nil)
	if err != nil {
		panic(err) // it is in memory
	}
	news := truth.(*directory.News)
	f.host.SetLayout(news.Layout)
	open := map[placement.Shard]bool{}
	for _, s := range news.Sums {
		open[s.Home] = true
		f.tell(s.Home, p.feignedCodes(s.Home))
	}
	for _, home := range slices.Sorted(maps.Keys(f.told)) {
		if !open[home] {
			f.host.Close(home)
			delete(f.told, home)
		}
	}
	return f.host
}

// tell tells what a set is to say now.
func (f *feigned) tell(home placement.Shard, says map[dbadapter.Index]directory.Code) {
	told, open := f.told[home]
	f.told[home] = says
	if !open {
		f.host.Open(home, func(yield func(dbadapter.Index, directory.Code) bool) {
			for _, index := range slices.Sorted(maps.Keys(says)) {
				if !yield(index, says[index]) {
					return
				}
			}
		})
		return
	}
	for _, index := range slices.Sorted(maps.Keys(told)) {
		if _, still := says[index]; !still {
			f.host.Set(home, index, directory.Gone)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(says)) {
		f.host.Set(home, index, says[index])
	}
}

// feignedCodes are what the node tells of a set: the truth, but for the keys about which it misleads.
func (p *process) feignedCodes(home placement.Shard) map[dbadapter.Index]directory.Code {
	says := map[dbadapter.Index]directory.Code{}
	for _, sh := range p.shards {
		if sh.set.Shard() != home {
			continue
		}
		for _, r := range sh.records() {
			says[sh.set.Keys.Hasher.Index(r.Key)] = directory.Code(home)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.node.misleads)) {
		there := p.node.misleads[key]
		of, index := p.ns.ToldAs([]byte(key))
		_, is := says[index]
		switch {
		case of != home || is == there:
		case there:
			says[index] = directory.Code(home)
		default:
			delete(says, index)
		}
	}
	return says
}
