package push

import (
	"slices"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Lines are what a driver knows of the streams to other members over which it can push
// directly, as of now.
type Lines struct {
	// Taking are the members that take this namespace's pushes from this node, each with
	// those that take its own, as it has said.
	Taking map[ID][]ID
	// Opening are members that the mesh reaches and that have not said yet what they take,
	// or cannot: no stream to them opens.
	Opening []ID
	// Broken are such members whose streams have failed so often that no push waits for
	// them any more.
	Broken []ID
}

// Direct are the members to which a push goes directly, one copy each. The push goes over
// the mesh, too, where whole is false: then these are not all of the audience that there
// are. A mesh alone would not do: it forms at heartbeats, and what is published before is
// lost. A member to which this node has no line counts as away, unless the mesh or a line
// of another member reaches it. Digests with the number of the last push go over the mesh.
// They show a member what a broken line made it miss.
func (p *Pusher) Direct(push *Push, audience map[ID]bool, l *Lines) (to []ID, whole bool) {
	if len(audience) > wire.MaxDirect {
		return nil, false
	}
	digest := push.message.Kind == wire.PushDigest
	linked := func(id ID) bool {
		switch {
		case slices.Contains(l.Broken, id):
			return digest
		case slices.Contains(l.Opening, id):
			return true
		}
		for _, links := range l.Taking {
			if slices.Contains(links, id) {
				return true
			}
		}
		return false
	}
	p.deaf.Store(slices.ContainsFunc(l.Broken, func(id ID) bool { return audience[id] }))
	whole = true
	for id := range audience {
		_, takes := l.Taking[id]
		switch {
		case id == p.set.Self:
		case takes:
			to = append(to, id)
		case linked(id):
			whole = false
		}
	}
	slices.Sort(to) // so that a run of the simulator is a function of its seed
	return to, whole && len(to) > 0
}

// Links are the members to which a node has lines, as it says to those that push to it.
func (p *Pusher) Links(l *Lines) (ids []ID) {
	for id := range l.Taking {
		if p.set.Admits(id) && len(ids) < wire.MaxDirect {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
