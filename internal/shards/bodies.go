package shards

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a host of bodies does with them beside answering: it collects those that nothing names.

// suspect is a body that may be garbage.
type suspect struct {
	key     []byte
	version dbadapter.Version
	name    wire.BodyName
}

// CollectBodies is one round over all bodies that are old enough, of the shards that this node collects: it asks which
// are named, and deletes those that nobody has named in the round before either. It reports how many went. The error is
// that of a store: a member that does not answer holds back the bodies that it may name.
func (s *Shards) CollectBodies(ctx context.Context) (collected int, err error) {
	if !s.NS.Bodied() {
		return 0, nil
	}
	s.rounds.Next()
	for _, set := range s.NS.Sets() {
		if !s.collects(set.Shard()) {
			continue
		}
		var after []byte
		for more := true; more; {
			var page map[placement.Shard][]*suspect
			if page, after, err = s.suspects(ctx, set, after); err != nil {
				return collected, err
			}
			more = after != nil
			for _, home := range slices.Sorted(maps.Keys(page)) {
				for all := range slices.Chunk(page[home], namesAtOnce) {
					collected += s.collect(ctx, set.Shard(), home, all)
				}
			}
		}
		if err := s.orphans(ctx, set); err != nil {
			return collected, err
		}
	}
	return collected, context.Cause(ctx)
}

// collects reports whether this node is the host that collects a shard's bodies: one that is whole is enough.
func (s *Shards) collects(shard placement.Shard) bool {
	row, members := s.NS.Row(shard), s.NS.Members()
	if s.NS.WholeHere(shard) == nil {
		return false
	}
	first := slices.IndexFunc(row.Old, func(id node.ID) bool { return s.NS.Admits(id) && !members.Lapsed(id) })
	return first >= 0 && row.Old[first] == s.NS.Self()
}

// orphans deletes the hints of a set whose bodies are gone.
func (s *Shards) orphans(ctx context.Context, set *node.Set) error {
	if s.NS.WholeHere(set.Shard()) != set { // it may lack bodies that there are
		return nil
	}
	var gone []dbadapter.Record
	for hint, err := range ScanSet(ctx, set, &ScanOptions{Prefix: bodies.HintPrefix(set.Shard())}) {
		if err != nil {
			return err
		}
		if len(gone) == wire.BatchRecords {
			break
		}
		if !bodies.MayCollect(hint.Version.Clock, s.NS.Time()) {
			continue
		}
		if r, err := wire.ParsePushed(hint.Value); err == nil {
			if _, p, err := bodies.Read(r.Value); err == nil && p != nil {
				body, err := set.Held(p.Key(r.Key))
				if err != nil {
					return err
				}
				if body != nil && !body.Deleted {
					continue
				}
			}
		}
		gone = append(gone, dbadapter.Record{Key: hint.Key, Version: hint.Version})
	}
	for i := range gone {
		_ = s.removeAt(ctx, gone[i].Key, gone[i].Version) // the next pass finds what stays
	}
	return nil
}

// namesAtOnce bodies, with the longest keys, fit into a question.
const namesAtOnce = 1024

// suspectsPage is how many bodies are looked through at a time: no snapshot is open while members are asked.
const suspectsPage = 16384

// suspects are the bodies of a set behind a key that are old enough to be collected, by the shards of their
// keys: a page. next is the last key that was looked at; nil: there are no more.
func (s *Shards) suspects(ctx context.Context, set *node.Set, after []byte) (page map[placement.Shard][]*suspect, next []byte, err error) {
	page, looked := map[placement.Shard][]*suspect{}, 0
	for r, err := range ScanSet(ctx, set, &ScanOptions{Prefix: bodies.Prefix(set.Shard()), After: after}) {
		if err != nil {
			return nil, nil, err
		}
		if looked++; looked > suspectsPage {
			return page, next, nil
		}
		next = r.Key
		if p, of, is := bodies.Names(r.Key); is && bodies.MayCollect(r.Version.Clock, s.NS.Time()) {
			home := s.NS.Home(of)
			page[home] = append(page[home], &suspect{r.Key, r.Version, wire.BodyName{Salt: p.Salt, Key: of}})
		}
	}
	return page, nil, nil
}

// collect asks who names bodies of a shard, of keys of one other: one member after the other about those that none
// before it has named. What is held is mostly named by the first, which is this node if it holds that shard. (bodies, 1, 2)
func (s *Shards) collect(ctx context.Context, shard, home placement.Shard, left []*suspect) (collected int) {
	of, err := NewAsker(s.NS, home)
	at, failed := NewAsker(s.NS, shard)
	if err != nil || failed != nil {
		return 0
	}
	for _, id := range s.nearest(s.NS.MayName(home)) {
		if len(left) == 0 {
			return 0
		}
		named, err := askSoon(ctx, s, of, id, s.Net.Now()+Patience, of.names(namesOf(left)))
		if err != nil {
			return 0
		}
		var unnamed []*suspect
		for i, one := range left {
			if !named[i] {
				unnamed = append(unnamed, one)
			}
		}
		left = unnamed
	}
	for _, one := range left {
		if !of.Current() || !at.Current() {
			break
		}
		if s.rounds.Denied(denial(one.key, of.Row().Name()), struct{}{}) && s.removeAt(ctx, one.key, one.version) == nil {
			collected++
		}
	}
	return collected
}

// denial stands for a body that all have denied by a row, in the rounds.
func denial(key []byte, row quorum.Name) (d [16]byte) {
	sum := sha256.Sum256(append(row[:], key...))
	return [16]byte(sum[:])
}

func namesOf(all []*suspect) (names []wire.BodyName) {
	for _, one := range all {
		names = append(names, one.name)
	}
	return names
}

// removeAt deletes what a reserved key holds, if it is of a version.
func (s *Shards) removeAt(ctx context.Context, key []byte, v dbadapter.Version) error {
	_, err := s.put(ctx, []node.Draft{{Record: dbadapter.Record{Key: key, Deleted: true}, If: &v}}, PutOptions{Level: quorum.Quorum}, nil)
	if errors.Is(err, ErrUnconfirmed) {
		return nil // the others hear of it by a sync
	}
	return err
}

// near reads a key's record and its body with one question, at the nearest host of the shard that is said to
// have the value. false: that does not give both, and the key's shard is to be asked.
func (s *Shards) near(ctx context.Context, key []byte, shard placement.Shard, over time.Duration) (Found, bool) {
	a, err := NewAsker(s.NS, shard)
	if err != nil {
		return Found{}, false
	}
	id := s.nearest(a.Row().Old)[0]
	began, requests := s.Net.Now(), 1
	if id == s.NS.Self() {
		requests = 0
	}
	b, err := askSoon(ctx, s, a, id, min(over, s.Net.Now()+overdue), a.body(key))
	if err != nil || !b.Whole || b.Record == nil || !a.Current() {
		return Found{Requests: requests}, false
	}
	record, p, err := s.opened(b.Record)
	if err != nil || p != nil && b.Value == nil {
		return Found{Requests: requests}, false
	}
	if p != nil {
		record.Value = b.Value
	}
	row := a.Row()
	answer := Answer{Peer: id, Old: true, New: row.IsNew(id), Answer: &HostAnswer{Whole: true, Record: record, Version: record.Version}, Took: s.Net.Now() - began}
	is := func(host node.ID) bool { return host == id }
	return Found{Shard: shard, Record: record, Old: sideOf(row.Old, is), New: sideOf(row.New, is), Hosts: []Answer{answer}, Requests: requests}, true
}

// Missing is a key whose record is held here, and whose value no host gives.
type Missing struct {
	Key     []byte
	Pointer bodies.Pointer
	// Err is bodies.ErrLost, or why it is not known.
	Err error
}

// MissingBodies reads the values that records of shards held here name, and tells of those that are missing, while more
// are asked for.
// Values that this node does not hold are fetched. The error is that of a store.
func (s *Shards) MissingBodies(ctx context.Context, missing func(Missing) (more bool)) (failed error) {
	if !s.NS.Bodied() {
		return nil
	}
	more := true
	for _, set := range s.NS.Sets() {
		records := ScanSet(ctx, set, &ScanOptions{After: s.NS.BehindReserved(nil)})
		openAll(ctx, s, records, 0, func(r *dbadapter.Record) *dbadapter.Record { return r }, func(r, now *dbadapter.Record, err error) bool {
			_, p, malformed := bodies.Read(r.Value)
			switch {
			case err == nil:
			case r.Key == nil || malformed != nil || p == nil: // the store's own
				failed = err
			default:
				more = missing(Missing{Key: r.Key, Pointer: *p, Err: err})
			}
			return more && failed == nil && ctx.Err() == nil
		})
		if err := errors.Join(failed, context.Cause(ctx)); err != nil || !more {
			return err
		}
	}
	return nil
}

// What hosts of bodies were told: the record that points to each of them.

// Reindex hands the records that this node was told to the hosts of their keys, and counts those of which a
// majority of these has each now, or something later. It is for when the hosts of keys have lost their data, and
// hosts of bodies have not. The error is that of the first record that was not confirmed; the others are handed
// on all the same.
func (s *Shards) Reindex(ctx context.Context) (handed int, failed error) {
	if !s.NS.Bodied() {
		return 0, fmt.Errorf("%w: only by placement writer do hosts know records of other shards", node.ErrInvalid)
	}
	for _, set := range s.NS.Sets() {
		for hint, err := range ScanSet(ctx, set, &ScanOptions{Prefix: bodies.HintPrefix(set.Shard())}) {
			if err != nil {
				return handed, err
			}
			record, err := wire.ParsePushed(hint.Value)
			if err != nil {
				continue // its writer sent no record: nothing is known of it
			}
			if err = s.pass(ctx, &record); err == nil {
				handed++
			} else if failed == nil {
				failed = fmt.Errorf("%q: %w", record.Key, err)
			}
		}
	}
	return handed, errors.Join(failed, context.Cause(ctx))
}

// pass gives a record to all hosts of its key, as it is, and waits for a majority that has it, or something later.
func (s *Shards) pass(ctx context.Context, r *dbadapter.Record) error {
	ctx, cut, over := s.begin(ctx)
	defer cut()
	home := s.NS.Home(r.Key)
	_, err := anew(ctx, s, home, over, func(a *Asker) (Written, error) {
		w := &write{Shards: s, drafts: make([]node.Draft, 1), over: over, shard: home, seen: make([][]*dbadapter.Record, 1), records: []dbadapter.Record{*r}, passed: true}
		return w.offer(ctx, a)
	})
	return err
}

// WhereBody reads the record of a key at quorum, and asks each host of its value for that. The answer is
// nil where the record holds its value itself, and where there is no record.
func (s *Shards) WhereBody(ctx context.Context, key []byte) (*status.Body, error) {
	ctx, cut, over := s.begin(ctx)
	defer cut()
	found, err := s.get(ctx, key, GetOptions{Level: quorum.Quorum}, over)
	if err != nil || found.Record == nil || found.Record.Deleted {
		return nil, err
	}
	_, p, err := bodies.Read(found.Record.Value)
	if err != nil || p == nil {
		return nil, err
	}
	hosts, err := anew(ctx, s, p.Shard, over, func(a *Asker) (hosts []status.BodyAt, err error) {
		hosts = []status.BodyAt{}
		for _, id := range a.Row().Hosts() {
			at := status.BodyAt{Peer: status.ID(id)}
			held := func(key []byte) *dbadapter.Record {
				answer, failed := askSoon(ctx, s, a, id, min(over, s.Net.Now()+bodyWait), a.record(key, false))
				if failed != nil {
					at.Error = failed.Error()
				}
				return answer.Record
			}
			if body := held(p.Key(key)); at.Error == "" {
				at.Has = body != nil && !body.Deleted && p.Proves(body.Value)
				if s.NS.Home(key) == p.Shard { // it needs no hint
					record := held(key)
					at.Told = record != nil && record.Version == found.Record.Version
				} else if hint := held(bodies.HintKey(p.Shard, key)); hint != nil && !hint.Deleted {
					record, failed := wire.ParsePushed(hint.Value)
					at.Told = failed == nil && record.Version == found.Record.Version
				}
			}
			if !a.Current() {
				return nil, errRow
			}
			hosts = append(hosts, at)
		}
		return hosts, nil
	})
	if err != nil {
		return nil, err
	}
	return &status.Body{Shard: int(p.Shard), Size: int(p.Size), Sent: p.Sent.Time().UTC(), Hosts: hosts}, nil
}
