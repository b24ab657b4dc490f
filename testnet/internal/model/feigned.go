package model

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// AllKeys is every key: of a host that hides it the feed has no news, however much it has changed.
const AllKeys = "all-keys"

// Mislead has the node, a modified program, tell from now on that a key is there, of which it holds nothing; or
// that a key is not there that it holds. It matters where the node is a host of the key.
func (n *Node) Mislead(key string, there bool) {
	if n.misleads == nil {
		n.misleads = map[string]bool{}
	}
	n.misleads[key] = there
}

// Misleads reports whether the node's feed says what is not so.
func (n *Node) Misleads() bool { return len(n.misleads) > 0 }

// lies are what the node is to say of indices of a set.
func (p *process) lies(set placement.Shard) map[dbadapter.Index]locator.Code {
	says := map[dbadapter.Index]locator.Code{}
	for key, there := range p.node.misleads {
		if p.ns.Home([]byte(key)) == set {
			index := p.ns.View(set).Hasher().Index([]byte(key))
			says[index] = locator.Gone
			if there {
				says[index] = locator.Code(set)
			}
		}
	}
	return says
}

// told are entries with the lies of those between two indices; Gone is left out, unless it is to be told.
func told(entries []locator.Entry, lies map[dbadapter.Index]locator.Code, from, next dbadapter.Index, gone bool) []locator.Entry {
	for index, code := range lies {
		if index < from || next != 0 && index >= next {
			continue
		}
		entries = slices.DeleteFunc(entries, func(e locator.Entry) bool { return e.Index() == index })
		if code != locator.Gone || gone {
			entries = append(entries, locator.NewEntry(index, code))
		}
	}
	slices.Sort(entries)
	return entries
}

// feign changes the true answer to a question about the feed, if the node misleads.
func (p *process) feign(ask *wire.Ask, reply *wire.Reply) {
	q, feed := ask.Question.(*wire.AskFeed)
	if !feed || !p.node.Misleads() {
		return
	}
	said, is := reply.Answer.(*wire.FeedAnswer)
	if !is { // it goes by another row
		return
	}
	shards := p.ns.Rule().Shards
	asked, err := locator.Parse(q.Message, shards)
	if err != nil {
		panic(err) // it was answered
	}
	answer, err := locator.Parse(said.Message, shards)
	if err != nil {
		panic(err)
	}
	_, old := p.node.misleads[AllKeys]
	switch m := answer.(type) {
	case *locator.News:
		for i := range m.Sets {
			since, n := asked.(*locator.Poll).Sets[i], &m.Sets[i]
			lies := p.lies(since.Set)
			switch {
			case n.Said > locator.Changed:
			case old:
				*n = locator.SetNews{}
			case len(lies) > 0:
				n.To, n.Said = max(n.To, since.Seq), locator.Changed
				n.Changes = told(n.Changes, lies, 0, 0, true)
			}
		}
	case *locator.Page:
		if t := asked.(*locator.Take); !m.Equal && !m.NotWhole {
			m.Entries = told(m.Entries, p.lies(t.Set), t.From, m.Next, false)
		}
	}
	message, err := locator.Append(nil, answer, shards)
	if err != nil {
		panic(err)
	}
	reply.Answer = &wire.FeedAnswer{Message: message}
}
