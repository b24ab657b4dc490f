package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A control namespace holds the statements of the list of members, and the table of
// the layout that counts. Under further kinds of keys it holds what each member
// says of itself. That is one record of a kind, and a pledge for each shard that
// the member holds.
const (
	// kindStatement begins the key of a statement; its hash follows.
	kindStatement = 's'
	// kindAddresses begins the key of where a member can be dialled; its id
	// follows, as in the keys of all kinds but statements.
	kindAddresses = 'a'
	// kindPledge begins the key of a member's pledge; where the namespace is cut into
	// shards, the shard follows the id.
	kindPledge = 'w'
	// kindShards begins the key of which shards a member holds.
	kindShards = 'h'
	// kindTable begins the key of the table of the layout that counts; its hash follows.
	kindTable = 't'
)

// ofMembers are the kinds of what members say of themselves, with the check of the
// values.
var ofMembers = map[byte]func(value []byte) error{
	kindAddresses: func(value []byte) error { _, err := readAddresses(value); return err },
	kindPledge:    func(value []byte) error { _, err := watermark.ParsePledge(value); return err },
	kindShards:    func(value []byte) error { _, err := readShardsHeld(value); return err },
}

func controlKey(kind byte, id ID) []byte { return append([]byte{kind}, id...) }

// ofKind yields the records of a kind in the control namespace.
func (ns *Namespace) ofKind(ctx context.Context, kind byte) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		snap, err := ns.Control.Store.Snapshot()
		if err != nil {
			yield(dbadapter.Hashed{}, err)
			return
		}
		defer snap.Close()
		snap.Scan(ctx, []byte{kind}, nil)(yield)
	}
}

// admitControl is the one way in for control records from a peer. The peer need not
// be a member: what it brings is signed by members.
func (ns *Namespace) admitControl(ctx context.Context, from ID, records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.over {
		return nil, dbadapter.ErrClosed
	}
	verdicts := make([]reconcile.Verdict, len(records))
	refused := func(i int, why *refusal) {
		verdicts[i].Reason = why.reason
		if ns.node.Refused != nil {
			ns.node.Refused(fmt.Errorf("of the control namespace, from %s: %w", from, why.err))
		}
	}
	if err := ns.admitStatements(ctx, records, verdicts, refused); err != nil {
		return nil, err
	}
	// What members say of themselves is examined under the list as it is now.
	var writes []dbadapter.Write
	var places []int // of writes in verdicts
	members, now := ns.Members(), ns.node.Now()
	for i := range records {
		switch records[i].Key[0] {
		case kindStatement:
			continue
		case kindTable:
			if err := ns.examineTable(&records[i]); err != nil {
				refused(i, &refusal{wire.ReasonWriter, err})
				continue
			}
			writes, places = append(writes, dbadapter.Write{Record: records[i]}), append(places, i)
			continue
		}
		if why := ns.examineOwn(members, now, &records[i].Record); why != nil {
			refused(i, why)
			continue
		}
		ns.clock.Observe(hlc.Timestamp(records[i].Version.Clock))
		writes, places = append(writes, dbadapter.Write{Record: records[i]}), append(places, i)
	}
	outcomes, err := ns.Control.apply(ctx, writes)
	if err != nil {
		return nil, err
	}
	moved := false // what members say of the shards that they hold
	for n, o := range outcomes {
		if o.Result == dbadapter.Full {
			refused(places[n], &refusal{wire.ReasonFull, errFull})
			continue
		}
		verdicts[places[n]].Result = o.Result
		switch r := &writes[n].Record; {
		case o.Result != dbadapter.Applied:
		case r.Key[0] == kindAddresses:
			a, _ := readAddresses(r.Value) // it has been read before
			err = errors.Join(err, ns.hearUnpledged(ID(r.Key[1:]), a.Unpledged))
			if ns.node.Moved != nil {
				ns.node.Moved(ID(r.Key[1:]), a.Addrs)
			}
		case r.Key[0] == kindTable:
			err = errors.Join(err, ns.place())
		case r.Key[0] == kindShards:
			err, moved = errors.Join(err, ns.hearShards(&r.Record)), true
		case r.Key[0] == kindPledge:
			for _, set := range ns.Sets() {
				err = errors.Join(err, set.gc.Update(func(w *watermark.Watermark) bool { return set.receive(w, &r.Record) }))
			}
		}
	}
	if moved {
		err = errors.Join(err, ns.holdersChanged())
	}
	return verdicts, err
}

// examineOwn says why what a member says of itself must stay outside, or nil. Such
// records are signed in unsigned namespaces, too.
func (ns *Namespace) examineOwn(members *Members, now time.Time, r *dbadapter.Record) *refusal {
	check, known := ofMembers[r.Key[0]]
	if !known || r.Key[0] == kindShards && ns.rule == nil {
		return refuse(wire.ReasonWriter, "the key %.80q is not one of a control namespace", r.Key)
	}
	by, shard := ns.about(r.Key)
	m, member := members.Member(by)
	if err := hlc.Check(r.Version.Clock.Time(), now, members.Policy().MaxSkew); err != nil {
		return &refusal{wire.ReasonClock, err}
	}
	switch {
	case !member:
		return refuse(wire.ReasonWriter, "%s is not a member", by)
	case ns.rule != nil && int(shard) >= ns.rule.Shards:
		return refuse(wire.ReasonWriter, "there is no shard %d", shard)
	case r.Version.Writer != m.Writer || r.Deleted:
		return refuse(wire.ReasonWriter, "%s speaks for itself alone, and deletes nothing", m.ID)
	case !ns.Control.signed(m.ID, r):
		return refuse(wire.ReasonSignature, "it is not signed by %s", m.ID)
	}
	if err := check(r.Value); err != nil {
		return refuse(wire.ReasonWriter, "what %s says of itself is malformed: %w", m.ID, err)
	}
	return nil
}

// say writes what this node says of itself, unless it has said the same before.
func (ns *Namespace) say(ctx context.Context, key, value []byte) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	held, err := ns.Control.get(key)
	if err == nil && bytes.Equal(held.Value, value) {
		return nil
	}
	if err != nil && !errors.Is(err, dbadapter.ErrNotFound) {
		return err
	}
	_, err = ns.sayLocked(ctx, key, value)
	return err
}

// sayLocked is say for a caller that holds updating, and says something new. It
// returns the record.
func (ns *Namespace) sayLocked(ctx context.Context, key, value []byte) (*dbadapter.Record, error) {
	if ns.over {
		return nil, dbadapter.ErrClosed
	}
	if err := ns.Outside(); err != nil {
		return nil, err
	}
	version, err := ns.NextVersion()
	if err != nil {
		return nil, err
	}
	hashed, err := dbadapter.Hash(ns.Control.Keys.Hasher, dbadapter.Record{Key: key, Value: value, Version: version})
	if err != nil {
		return nil, err
	}
	writes := []dbadapter.Write{{Record: hashed}}
	if err := ns.Control.sign(writes); err != nil {
		return nil, err
	}
	outcomes, err := ns.Control.Store.Apply(ctx, writes)
	if err == nil && outcomes[0].Result == dbadapter.Full {
		err = errFull
	}
	return &writes[0].Record.Record, err
}
