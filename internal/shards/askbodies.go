package shards

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer large values are bodies: records under keys that name their shard (package bodies).

// newBody points to the body of a value that this node sends now.
func newBody(ns *node.Namespace, key, value []byte) *bodies.Pointer {
	p := &bodies.Pointer{Shard: bodyShard(ns, key), Size: uint32(len(value)), Sent: dbadapter.TimestampAt(ns.Time()), Sum: sha256.Sum256(value)}
	ns.Random(p.Salt[:], node.ForSalt)
	return p
}

// bodyShard is the shard for the body of a key's value: the key's, if this node hosts it or none; else one in whose
// row it is the first host, or another one that it hosts. Keys are spread over several such shards.
func bodyShard(ns *node.Namespace, key []byte) placement.Shard {
	var first, hosts []placement.Shard
	for _, set := range ns.Sets() {
		row := ns.Row(set.Shard())
		if row == nil || !row.IsNew(ns.Self()) {
			continue
		}
		if hosts = append(hosts, set.Shard()); row.New[0] == ns.Self() {
			first = append(first, set.Shard())
		}
	}
	home := ns.Home(key)
	if slices.Contains(hosts, home) {
		return home
	}
	for _, all := range [][]placement.Shard{first, hosts} {
		if len(all) > 0 {
			return all[int(home)%len(all)]
		}
	}
	return home
}

// body asks a host of a shard for a key's record and its body, as far as it has them in the shard. This
// node's own answer is checked, too: no host has verified the record in a hint. A value that does not prove itself is left out.
func (a *Asker) body(key []byte) question[wire.BodyAnswer] {
	return question[wire.BodyAnswer]{&wire.AskBody{ShardRow: a.at, Key: key}, func(from node.ID, reply *wire.Reply) (wire.BodyAnswer, error) {
		said := reply.Answer.(*wire.BodyAnswer)
		b := wire.BodyAnswer{Whole: said.Whole}
		if said.Record == nil {
			return b, nil
		}
		record := said.Record.Clone()
		home := Asker{ns: a.ns, view: a.ns.View(a.ns.Home(key))}
		if err := home.check(from, &record, key); err != nil {
			return wire.BodyAnswer{}, fmt.Errorf("%w: %w", node.ErrDeclined, err)
		}
		b.Record = &record
		if p := bodies.Of(&record); p != nil && p.Proves(said.Value) {
			b.Value = bytes.Clone(said.Value)
		}
		return b, nil
	}}
}

// answerBody looks up a key's record, or the hint of it, and the body that it names.
func answerBody(ns *node.Namespace, set *node.Set, q *wire.AskBody) (a wire.Answering, err error) {
	if !ns.Bodied() {
		return &wire.Apart{}, nil
	}
	b, shard := &wire.BodyAnswer{}, set.Shard()
	if ns.Home(q.Key) == shard {
		if b.Record, err = set.Held(q.Key); err != nil {
			return nil, err
		}
	} else {
		hint, err := set.Held(bodies.HintKey(shard, q.Key))
		if err != nil {
			return nil, err
		}
		if hint != nil && !hint.Deleted {
			if r, err := wire.ParsePushed(hint.Value); err == nil {
				b.Record = &r
			}
		}
	}
	if p := bodies.Of(b.Record); p != nil && p.Shard == shard {
		body, err := set.Held(p.Key(q.Key))
		if err != nil {
			return nil, err
		}
		if body != nil {
			b.Value = body.Value
		}
	}
	b.Whole = !set.Recovers()
	return b, nil
}

// names asks a member which of some bodies its records of the shard name.
func (a *Asker) names(names []wire.BodyName) question[[]bool] {
	return question[[]bool]{&wire.AskNames{ShardRow: a.at, Names: names}, func(_ node.ID, reply *wire.Reply) ([]bool, error) {
		said := reply.Answer.(*wire.NamesAnswer)
		if len(said.Named) != len(names) {
			return nil, fmt.Errorf("%w: %d answers about %d bodies", reconcile.ErrProtocol, len(said.Named), len(names))
		}
		return said.Named, nil
	}}
}

// answerNames says which bodies the records of a shard here name, and its kept log: first the records,
// which go from there to the log. reconcile.ErrBusy: the shard is being opened, or this node is a host of it
// and not whole.
func answerNames(ctx context.Context, ns *node.Namespace, q *wire.AskNames) (wire.Answering, error) {
	if !ns.Bodied() || !ns.GoesBy(&q.ShardRow) {
		return &wire.Apart{}, nil
	}
	shard, a := placement.Shard(q.Shard), &wire.NamesAnswer{Named: make([]bool, len(q.Names))}
	set, host := ns.Held(shard), ns.Row(shard).IsHost(ns.Self())
	switch {
	case ns.Opening(shard), set != nil && host && set.Recovers(),
		ns.Lost() != nil: // what is lost may name one
		return nil, reconcile.ErrBusy
	}
	wanted := map[[16]byte]int{}
	for i, n := range q.Names {
		wanted[n.Salt] = i
		if set == nil {
			continue
		}
		held, err := set.Held(n.Key)
		if err != nil {
			return nil, err
		}
		p := bodies.Of(held)
		a.Named[i] = p != nil && p.Salt == n.Salt
	}
	for _, log := range ns.Logs() {
		if log.Shard() != shard || log.Kept() == 0 {
			continue
		}
		for k, err := range log.Store.Kept(ctx) {
			if err != nil {
				return nil, err
			}
			if p := bodies.Of(&k.Record); p != nil {
				if i, is := wanted[p.Salt]; is && bytes.Equal(q.Names[i].Key, k.Record.Key) {
					a.Named[i] = true
				}
			}
		}
	}
	switch {
	case !ns.GoesBy(&q.ShardRow):
		return &wire.Apart{}, nil
	case host && set.Recovers():
		return nil, reconcile.ErrBusy
	}
	return a, nil
}
