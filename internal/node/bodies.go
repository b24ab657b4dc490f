package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer large values are bodies: records under keys that name their shard (package bodies).

// Bodied reports whether large values are bodies in this namespace.
func (ns *Namespace) Bodied() bool { return ns.rule != nil && ns.rule.Kind == placement.Writer }

// Time is this node's wall clock.
func (ns *Namespace) Time() time.Time { return ns.node.Now() }

// NewBody points to the body of a value that this node sends now.
func (ns *Namespace) NewBody(key, value []byte) *bodies.Pointer {
	p := &bodies.Pointer{Shard: ns.bodyShard(key), Size: uint32(len(value)), Sent: dbadapter.TimestampAt(ns.node.Now()), Sum: sha256.Sum256(value)}
	ns.node.random(p.Salt[:], ForSalt)
	return p
}

// bodyShard is the shard for the body of a key's value: the key's, if this node hosts it or none; else one in whose
// row it is the first host, or another one that it hosts. Keys are spread over several such shards.
func (ns *Namespace) bodyShard(key []byte) placement.Shard {
	var first, hosts []placement.Shard
	for _, set := range ns.Sets() {
		row := ns.Row(set.shard)
		if row == nil || !row.IsNew(ns.node.ID) {
			continue
		}
		if hosts = append(hosts, set.shard); row.New[0] == ns.node.ID {
			first = append(first, set.shard)
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

// reserved reports whether a key is that of a body or a hint, which no watch tells of.
func (ns *Namespace) reserved(key []byte) bool { return ns.Bodied() && bodies.Reserved(key) }

// BehindReserved is where a scan of users' keys behind a key begins.
func (ns *Namespace) BehindReserved(after []byte) []byte {
	if last := bodies.Last(); ns.Bodied() && bytes.Compare(after, last) < 0 {
		return last
	}
	return after
}

// pointerOf is where the value of a record is; nil: in the record, or there is none.
func pointerOf(r *dbadapter.Record) *bodies.Pointer {
	if r == nil || r.Deleted {
		return nil
	}
	_, p, err := bodies.Read(r.Value)
	if err != nil {
		return nil
	}
	return p
}

// asUsers makes what is kept of a body, or of a hint, what it is to a user: a value of its key.
func (ns *Namespace) asUsers(r *dbadapter.Record) {
	if !ns.Bodied() || !bodies.Reserved(r.Key) {
		return
	}
	if _, of, is := bodies.Names(r.Key); is {
		if r.Key = of; !r.Deleted {
			r.Value = bodies.Inline(r.Value)
		}
	} else if told, err := wire.ParsePushed(r.Value); err == nil {
		*r = told
	}
}

// mayTake reports whether a record of a writer may be held in the place of another one. (bodies, 4)
func (ns *Namespace) mayTake(r, held *dbadapter.Record) bool {
	return !ns.Bodied() || bodies.Reserved(r.Key) || bodies.MayTake(pointerOf(r), pointerOf(held), ns.node.Now())
}

// sameValue is SameContent of users' values: two bodies of one value are the same.
func (ns *Namespace) sameValue(a, b *dbadapter.Record) bool {
	if !ns.Bodied() || bodies.Reserved(a.Key) {
		return a.SameContent(b)
	}
	if p, q := pointerOf(a), pointerOf(b); p != nil && q != nil {
		return p.Sum == q.Sum && p.Size == q.Size && a.Expires == b.Expires
	}
	return a.SameContent(b)
}

// AskBody asks a host of a shard for a key's record and its body, as far as it has them in the shard.
func (a *Asker) AskBody(key []byte) *wire.AskBody { return &wire.AskBody{ShardRow: a.at, Key: key} }

// HostBody is what a host answers to AskBody.
type HostBody struct {
	Apart, Whole bool // as in HostAnswer
	// Record is what the shard holds under the key, or a hint's; nil: neither. Value is that of the body that
	// it names, if that proves itself; nil: none.
	Record *dbadapter.Record
	Value  []byte
}

// Body is what a message of the peer answers to AskBody. It keeps nothing of m.
func (a *Asker) Body(remote ID, ask *wire.Ask, m wire.Message) (HostBody, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return HostBody{}, err
	}
	return a.body(remote, ask.Question.(*wire.AskBody), reply.Answer.(*wire.BodyAnswer))
}

// BodyHere is what this node, a host, answers to AskBody.
func (a *Asker) BodyHere(q *wire.AskBody) (HostBody, error) {
	said, err := a.ns.answerBody(q)
	if err != nil {
		return HostBody{}, err
	}
	return a.body(a.ns.node.ID, q, said)
}

func (a *Asker) body(remote ID, asked *wire.AskBody, said *wire.BodyAnswer) (HostBody, error) {
	b := HostBody{Apart: said.Apart, Whole: said.Whole}
	if said.Record == nil {
		return b, nil
	}
	record := said.Record.Clone()
	home := Asker{ns: a.ns, view: a.ns.view(a.ns.Home(asked.Key))}
	if err := home.check(remote, &record, asked.Key); err != nil {
		return HostBody{}, fmt.Errorf("%w: %w", ErrDeclined, err)
	}
	b.Record = &record
	if p := pointerOf(&record); p != nil && p.Proves(said.Value) {
		b.Value = bytes.Clone(said.Value)
	}
	return b, nil
}

// answerBody looks up a key's record, or the hint of it, and the body that it names.
func (ns *Namespace) answerBody(q *wire.AskBody) (*wire.BodyAnswer, error) {
	set, err := ns.asHost(&q.ShardRow)
	if set == nil || !ns.Bodied() {
		return &wire.BodyAnswer{Apart: true}, err
	}
	a, shard := &wire.BodyAnswer{}, placement.Shard(q.Shard)
	if ns.Home(q.Key) == shard {
		if a.Record, err = set.Held(q.Key); err != nil {
			return nil, err
		}
	} else {
		hint, err := set.Held(bodies.HintKey(shard, q.Key))
		if err != nil {
			return nil, err
		}
		if hint != nil && !hint.Deleted {
			if r, err := wire.ParsePushed(hint.Value); err == nil {
				a.Record = &r
			}
		}
	}
	if p := pointerOf(a.Record); p != nil && p.Shard == shard {
		body, err := set.Held(p.Key(q.Key))
		if err != nil {
			return nil, err
		}
		if body != nil {
			a.Value = body.Value
		}
	}
	if !ns.goesBy(&q.ShardRow) {
		return &wire.BodyAnswer{Apart: true}, nil
	}
	a.Whole = set.settled()
	return a, nil
}

// AskNames asks a member which of some bodies its records of the shard name.
func (a *Asker) AskNames(names []wire.BodyName) *wire.AskNames {
	return &wire.AskNames{ShardRow: a.at, Names: names}
}

// Named is what a message of the peer answers to AskNames. apart: as in HostAnswer.
func (a *Asker) Named(remote ID, ask *wire.Ask, m wire.Message) (named []bool, apart bool, err error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return nil, false, err
	}
	said := reply.Answer.(*wire.NamesAnswer)
	if n := len(ask.Question.(*wire.AskNames).Names); !said.Apart && len(said.Named) != n {
		return nil, false, fmt.Errorf("%w: %d answers about %d bodies", reconcile.ErrProtocol, len(said.Named), n)
	}
	return said.Named, said.Apart, nil
}

// NamedHere is what this node answers to AskNames.
func (a *Asker) NamedHere(ctx context.Context, q *wire.AskNames) (named []bool, apart bool, err error) {
	said, err := a.ns.answerNames(ctx, q)
	if err != nil {
		return nil, false, err
	}
	return said.Named, said.Apart, nil
}

// answerNames says which bodies the records of a shard here name, and its kept log: first the records,
// which go from there to the log. reconcile.ErrBusy: the shard is being opened, or this node is a host of it
// and not whole.
func (ns *Namespace) answerNames(ctx context.Context, q *wire.AskNames) (*wire.NamesAnswer, error) {
	if !ns.Bodied() || !ns.goesBy(&q.ShardRow) {
		return &wire.NamesAnswer{Apart: true}, nil
	}
	shard, a := placement.Shard(q.Shard), &wire.NamesAnswer{Named: make([]bool, len(q.Names))}
	set, host := ns.held(shard), ns.Row(shard).IsHost(ns.node.ID)
	if set == nil {
		state := ns.state.Load()
		if at, has := state.find(shard); host || has && !state.Shards[at].Dropped {
			return nil, reconcile.ErrBusy
		}
	} else if host && !set.settled() {
		return nil, reconcile.ErrBusy
	}
	if ns.state.Load().Lost != nil { // what is lost may name one
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
		p := pointerOf(held)
		a.Named[i] = p != nil && p.Salt == n.Salt
	}
	for _, log := range ns.Logs() {
		if log.shard != shard || log.Kept() == 0 {
			continue
		}
		for k, err := range log.Store.Kept(ctx) {
			if err != nil {
				return nil, err
			}
			if p := pointerOf(&k.Record); p != nil {
				if i, is := wanted[p.Salt]; is && bytes.Equal(q.Names[i].Key, k.Record.Key) {
					a.Named[i] = true
				}
			}
		}
	}
	switch {
	case !ns.goesBy(&q.ShardRow):
		return &wire.NamesAnswer{Apart: true}, nil
	case host && !set.settled():
		return nil, reconcile.ErrBusy
	}
	return a, nil
}

// Size is the size of the user's value of a record as hosts hold it, such as an entry of a kept log.
func (ns *Namespace) Size(r *dbadapter.Record) int {
	if ns.Bodied() {
		return bodies.Size(r.Value)
	}
	return len(r.Value)
}

// UsersKey is the user's key of a record, of which that of a body names it; false: it has none, as a hint's.
func (ns *Namespace) UsersKey(key []byte) (of []byte, users bool) {
	if !ns.reserved(key) {
		return key, true
	}
	_, of, users = bodies.Names(key)
	return of, users
}
