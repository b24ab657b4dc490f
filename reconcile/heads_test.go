package reconcile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// keysThatDiffer runs a dry run from a to b that lists at most limit keys, or all for a
// negative limit.
func keysThatDiffer(t testing.TB, a, b *side, o Options, limit int, tap tap) ([]KeyDifference, outcome) {
	t.Helper()
	var all []KeyDifference
	o.DryRun = true
	o.Differs = func(d KeyDifference) (bool, error) {
		if limit >= 0 && len(all) == limit {
			return false, nil
		}
		all = append(all, d)
		return true, nil
	}
	out := run(t, a, b, o, tap)
	return all, out
}

// expected is what a plain comparison of two dumps lists, by key.
func expected(here, there []dbadapter.Record, o Options) (all []KeyDifference) {
	held := map[string]*dbadapter.Record{}
	for n := range there {
		held[string(there[n].Key)] = &there[n]
	}
	head := func(r *dbadapter.Record) Head { return Head{r.Version, r.Deleted, r.Expires} }
	for n := range here {
		r := &here[n]
		theirs := held[string(r.Key)]
		delete(held, string(r.Key))
		d := KeyDifference{Key: r.Key, Here: head(r), HereWins: true}
		switch {
		case theirs == nil:
			d.Kind = MissingThere
		case r.Compare(theirs) == 0:
			continue
		default:
			d.There, d.HereWins, d.Kind = head(theirs), r.Compare(theirs) > 0, Conflict
			switch {
			case d.HereWins && r.Supersedes(theirs.Version):
				d.Kind = NewerHere
			case !d.HereWins && theirs.Supersedes(r.Version):
				d.Kind = NewerThere
			}
		}
		all = append(all, d)
	}
	for _, r := range held {
		all = append(all, KeyDifference{Key: r.Key, Kind: MissingHere, There: head(r)})
	}
	all = slices.DeleteFunc(all, func(d KeyDifference) bool { return !bytes.HasPrefix(d.Key, o.Prefix) })
	slices.SortFunc(all, func(a, b KeyDifference) int { return bytes.Compare(a.Key, b.Key) })
	return all
}

// different gives each side records at random: alike, missing, overwritten, deleted,
// expiring, beside one another, and two contents of one version.
func different(rng *rand.Rand, a, b *side, n int) {
	for i := range n {
		key := fmt.Sprintf("%c/%03d", 'p'+rng.IntN(2), i)
		old := record(key, "old", at(time.Duration(rng.IntN(1000))*time.Second))
		if rng.IntN(2) == 0 {
			old.Value = bytes.Repeat([]byte("o"), 1+rng.IntN(3000))
		}
		newer := old
		newer.Version.Clock += dbadapter.Timestamp(rng.Int64N(1 << 40))
		newer.Value = []byte("new")
		sides := [2]*side{a, b}
		if rng.IntN(2) == 0 {
			sides = [2]*side{b, a}
		}
		switch rng.IntN(8) {
		case 0, 1:
			a.put(old)
			b.put(old)
			continue
		case 2:
			sides[0].put(old)
			continue
		case 3:
			newer.Deleted, newer.Value = true, nil
		case 4: // the writer did not know of the other version
			newer.Version.Writer, newer.Version.Incarnation = 8, 1
		case 5: // it did
			newer.Version.Writer, newer.Version.Incarnation = 8, 1
			newer.Replace(&old)
		case 6: // one version, two contents
			newer.Version = old.Version
		case 7:
			newer.Expires = dbadapter.TimestampAt(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
		}
		sides[0].put(old)
		sides[1].put(newer)
	}
}

func byKey(all []KeyDifference) []KeyDifference {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b KeyDifference) int { return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind)) })
	return all
}

// A listing is what a plain comparison of both sides finds, in whatever way the
// differences were found, and changes nothing on either side.
func TestListsWhatDiffers(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var hasher dbadapter.Hasher
		if seed%3 == 1 {
			hasher = storetest.Weak(testKeys.Hasher, 5) // several keys an index
		}
		a, b := newSide(t, "a", hasher), newSide(t, "b", hasher)
		switch seed % 5 {
		default:
			different(rng, a, b, 1+rng.IntN(200))
		case 3:
			different(rng, a, newSide(t, "c", hasher), 100) // the responder is empty
		case 4:
			different(rng, newSide(t, "c", hasher), b, 3000) // the initiator is
		}
		o := Options{}
		if seed%4 == 0 {
			o.Prefix = []byte("p/")
			a.prefix, b.prefix = o.Prefix, o.Prefix
		}
		before := [2][]dbadapter.Record{a.dump(), b.dump()}
		got, out := keysThatDiffer(t, a, b, o, -1, nil)
		if out.errA != nil || out.errB != nil {
			t.Fatalf("seed %d: %v, %v", seed, out.errA, out.errB)
		}
		want := expected(before[0], before[1], o)
		if got = byKey(got); !slices.EqualFunc(got, want, func(a, b KeyDifference) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("seed %d: listed %v, want %v", seed, got, want)
		}
		if out.a.Keys != len(want) || out.a.MoreKeys {
			t.Errorf("seed %d: the report has %d keys, more: %v", seed, out.a.Keys, out.a.MoreKeys)
		}
		if !reflect.DeepEqual(before, [2][]dbadapter.Record{a.dump(), b.dump()}) || out.a.RecordBytes+out.b.RecordBytes > 0 {
			t.Fatalf("seed %d: a listing changed what a side holds", seed)
		}
		if len(want) > 0 {
			limit := rng.IntN(len(want))
			some, out := keysThatDiffer(t, a, b, o, limit, nil)
			if out.errA != nil || out.errB != nil || len(some) != limit || !out.a.MoreKeys || out.a.Keys != limit {
				t.Fatalf("seed %d: with the limit %d %d keys, %v, %v, %+v", seed, limit, len(some), out.errA, out.errB, out.a)
			}
		}
	}
}

// A responder that lies about the heads is found out, and what it says costs no more
// than was asked for.
func TestHeadsThatAreNotWhatWasTold(t *testing.T) {
	ours, theirs := record("k", "ours", at(time.Second)), record("k", "theirs", at(time.Minute))
	other, further := record("other", "", at(0)), record("further", "", at(0))
	flood := make([]wire.Offer, wire.MaxOffers)
	for n := range flood {
		flood[n] = headOffer(&theirs, true)
	}
	unhashed := headOffer(&theirs, false)
	for name, says := range map[string][]wire.Message{
		"none":                   {&wire.End{}},
		"of another index":       {&wire.Offers{Offers: []wire.Offer{headOffer(&other, true)}}, &wire.End{}},
		"one more":               {&wire.Offers{Offers: []wire.Offer{headOffer(&theirs, true), headOffer(&further, true)}}, &wire.End{}},
		"twice":                  {&wire.Offers{Offers: []wire.Offer{headOffer(&theirs, true), headOffer(&theirs, true)}}, &wire.End{}},
		"without a hash":         {&wire.Offers{Offers: []wire.Offer{unhashed}}, &wire.End{}},
		"as a bid":               {&wire.Offers{Wanting: true, Offers: []wire.Offer{headOffer(&theirs, true)}}, &wire.End{}},
		"more than asked for":    {&wire.Offers{Offers: flood}, &wire.Offers{Offers: flood}, &wire.Offers{Offers: flood}, &wire.Offers{Offers: flood}, &wire.Offers{Offers: flood}},
		"with records":           {&wire.Records{Records: []wire.Sent{{Record: theirs}}}},
		"with an end that tells": {&wire.Offers{Offers: []wire.Offer{headOffer(&theirs, true)}}, &wire.End{Applied: 1}},
	} {
		a := newSide(t, "a", nil)
		a.put(ours)
		i := a.keys.Hasher.Index(theirs.Key)
		says = append([]wire.Message{
			&wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: a.keys.Hasher.Digest(&theirs)}}, &wire.Indices{Role: wire.Newer, Indices: []dbadapter.Index{i}},
			&wire.Result{Method: wire.MethodSketch},
		}, says...)
		if err := toInitiator(t, a, newSide(t, "b", nil), Options{DryRun: true, Differs: takeAll}, says...).Err(); !errors.Is(err, ErrProtocol) {
			t.Errorf("heads %s: %v", name, err)
		}
	}
}

// Where the responder's heads are of all records, they are as many as it announced, and
// of what is compared.
func TestHeadsOfAllThatAreNot(t *testing.T) {
	one, two, outside := record("p/1", "", at(0)), record("p/2", "", at(0)), record("q", "", at(0))
	for name, heads := range map[string][]wire.Offer{
		"too few":            {headOffer(&one, false)},
		"too many":           {headOffer(&one, false), headOffer(&two, false), headOffer(&two, false)},
		"outside the prefix": {headOffer(&one, false), headOffer(&outside, false)},
	} {
		a := newSide(t, "a", nil)
		a.prefix = []byte("p/")
		s := toInitiator(t, a, newSide(t, "b", nil), Options{DryRun: true, Differs: takeAll},
			&wire.Welcome{Sum: dbadapter.Sum{Records: 2, Digest: dbadapter.Digest{1}}}, &wire.Result{Method: wire.MethodAll}, &wire.Offers{Offers: heads}, &wire.End{})
		if err := s.Err(); !errors.Is(err, ErrProtocol) {
			t.Errorf("heads %s: %v", name, err)
		}
	}
}

// An initiator that takes its time keeps its peer from thinking that it is gone, and one
// whose caller fails ends the sync with that error.
func TestListingWaitsForItsCaller(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	different(rand.New(rand.NewPCG(5, 5)), a, b, 40)
	var clock time.Duration
	a.elapsed = func() time.Duration { return clock }
	var s *Session
	va, vb := a.open(), b.open()
	defer va.Close()
	defer vb.Close()
	failed := errors.New("the caller fails")
	taken := 0
	s = Initiate(va, a.options(b, Options{DryRun: true, Differs: func(KeyDifference) (bool, error) {
		if taken++; taken == 3 {
			return false, failed
		}
		for range 20 {
			clock += time.Second
			if err := s.Tick(); err != nil {
				return false, err
			}
		}
		return true, nil
	}}))
	sb := Respond(opening(vb), b.options(a, Options{}))
	var out outcome
	carry(t, s, sb, &out, nil)
	if r := s.Report(); !errors.Is(s.Err(), failed) || r.Verified || sb.Err() != nil || r.Keys != 2 || r.Working < 6 {
		t.Errorf("%v, %v, %d keys, %d times working", s.Err(), sb.Err(), r.Keys, r.Working)
	}
}
