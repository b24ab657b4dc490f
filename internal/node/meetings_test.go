package node

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// looked are the records of a shard, and what is decided of each in a test.
type looked struct {
	m        meetings
	time     time.Duration
	records  []string
	verdicts map[string]func() (verdict, error) // of what is elsewhere
	unknown  bool                               // where the keys are that have no verdict
	asked    []string                           // in the last look
	verify   bool                               // something is to be verified
	verified int                                // how often that was done
	chance   string                             // what turns out to be elsewhere by it
	scans    int
}

// look lets ten seconds pass and looks at shard 1, if it is due.
func (k *looked) look(t *testing.T) (due bool) {
	t.Helper()
	k.time += MeetingsSoon
	k.asked = nil
	all := k.m.due([]placement.Shard{1}, k.time)
	for _, s := range all {
		err := k.m.look(t.Context(), s, &lookThrough{
			keys: func(after []byte) iter.Seq2[[]byte, error] {
				k.scans++
				return func(yield func([]byte, error) bool) {
					for _, key := range k.records {
						if key > string(after) && !yield([]byte(key), nil) {
							return
						}
					}
				}
			},
			elsewhere: func(key []byte, verify bool) (bool, bool) {
				k.verify = k.verify || verify
				elsewhere := k.verdicts[string(key)] != nil
				return elsewhere, elsewhere || !k.unknown
			},
			decide: func(key []byte) (verdict, error) {
				k.asked = append(k.asked, string(key))
				return k.verdicts[string(key)]()
			},
			failed: func(error) {},
			now:    func() time.Duration { return k.time },
		})
		if err != nil {
			t.Fatal(err)
		}
		if k.verify {
			k.verify, k.verified = false, k.verified+1
			if k.chance != "" {
				k.verdicts[k.chance] = func() (verdict, error) { return decided, nil }
				k.m.met(1)
			}
		}
	}
	return len(all) > 0
}

func newLooked(records int) *looked {
	k := &looked{time: time.Hour, verdicts: map[string]func() (verdict, error){}}
	k.m.most, k.m.every = 4, 1000*time.Hour
	k.m.shard(1)
	for i := range records {
		k.records = append(k.records, fmt.Sprintf("key %02d", i))
	}
	return k
}

// What a look has verified it does not verify again where it goes on before a key for which there was no room.
func TestLooksVerifyOnce(t *testing.T) {
	k := newLooked(3)
	k.verdicts[k.records[1]] = func() (verdict, error) { return noRoom, nil }
	k.m.met(1)
	for range 30 {
		k.look(t)
	}
	if k.scans < 20 || k.verified != 1 {
		t.Errorf("%d times in %d looks", k.verified, k.scans)
	}
}

// A look goes on where the last one has ended: records that cannot be decided, as many as are
// remembered at once, hide none that follow them, and are looked at again.
func TestLooksGoOn(t *testing.T) {
	k := newLooked(20)
	stuck := k.records[:10]
	times := map[string]int{}
	for i, key := range k.records {
		k.verdicts[key] = func() (verdict, error) {
			times[key]++
			if i < 5 {
				return undecided, errors.New("its hosts do not answer")
			}
			if i < len(stuck) {
				return undecided, nil
			}
			delete(k.verdicts, key)
			return decided, nil
		}
	}
	k.m.met(1)
	for range 12 { // 20 keys, four at a time, twice
		k.look(t)
	}
	for i, key := range k.records {
		if i < len(stuck) && times[key] < 2 || i >= len(stuck) && times[key] != 1 {
			t.Errorf("%q was looked at %d times", key, times[key])
		}
	}
	for _, key := range stuck {
		k.verdicts[key] = func() (verdict, error) {
			delete(k.verdicts, key)
			return decided, nil
		}
	}
	for range 10 {
		k.look(t)
	}
	if len(k.verdicts) > 0 || k.look(t) {
		t.Errorf("%d are left, and the shard is due: %t", len(k.verdicts), k.look(t))
	}
}

// That a record has lost is remembered while it cannot be carried out, of that version alone.
func TestLostRecordsAreRemembered(t *testing.T) {
	k := newLooked(10)
	key := k.records[7]
	lost := dbadapter.Version{Clock: 5, Writer: 6}
	has := func() bool { return k.m.lostAs(1, []byte(key)) == lost }
	is := undecided
	k.verdicts[key] = func() (verdict, error) {
		if k.scans == 1 {
			k.m.hasLost(1, []byte(key), lost)
		} else if !has() {
			t.Errorf("look %d: it is forgotten", k.scans)
		}
		return is, nil
	}
	k.m.met(1)
	for range 3 {
		k.look(t)
	}
	if !has() || k.m.lostAs(1, []byte("another")) != (dbadapter.Version{}) || k.m.lostAs(2, []byte(key)) != (dbadapter.Version{}) {
		t.Error("it is not remembered, or of another key")
	}
	is = decided
	for range 2 {
		k.look(t)
	}
	k.m.met(1)
	k.verdicts[key] = nil
	k.look(t)
	if has() {
		t.Error("it was carried out, and is remembered")
	}
}

// However many keys go out of a shard, it is looked through once, and not again before ten
// seconds; once more for those that go while it is.
func TestLooksAreGathered(t *testing.T) {
	k := newLooked(10)
	for range 100 {
		k.m.met(1)
	}
	k.look(t)
	if k.look(t) || k.scans != 1 {
		t.Errorf("100 keys that have gone are looked for %d times", k.scans)
	}
	k.m.met(1)
	k.look(t)
	k.m.met(1)
	k.time -= MeetingsSoon + 1
	if k.look(t) {
		t.Error("a shard is due at once after a look")
	}
	k.time++
	if !k.look(t) || k.scans != 3 {
		t.Errorf("%d looks", k.scans)
	}
	for _, key := range k.records {
		k.verdicts[key] = func() (verdict, error) {
			if key == k.records[0] {
				k.m.met(1) // behind it
			}
			return decided, nil
		}
	}
	k.m.met(1)
	k.look(t)
	k.verdicts = map[string]func() (verdict, error){}
	for range 5 {
		k.look(t)
	}
	if k.scans < 6 || k.look(t) {
		t.Errorf("%d looks: what goes while a look is under way is not looked for", k.scans)
	}
}

// Of each shard so many absences are remembered, and none is forgotten before its time: with
// more records than that each comes to its end, and one shard takes no other one's room.
func TestAbsencesAreBounded(t *testing.T) {
	k := newLooked(10)
	ended := map[string]time.Duration{}
	for _, key := range k.records {
		k.verdicts[key] = func() (verdict, error) {
			since, noted := k.m.absentSince(1, []byte(key), dbadapter.Version{}, k.time)
			switch {
			case !noted:
				return noRoom, nil
			case k.time-since < AbsentFor:
				return awaited, nil
			}
			ended[key] = k.time
			delete(k.verdicts, key)
			return decided, nil
		}
	}
	k.m.met(1)
	for range 60 { // three times two minutes, and a look behind each
		for i := range 100 { // another shard, which is not held
			k.m.absentSince(2, fmt.Append(nil, "other ", i), dbadapter.Version{}, k.time)
		}
		k.look(t)
		for s, l := range k.m.of {
			if len(l.absent) > k.m.most {
				t.Fatalf("%d absences of shard %d are remembered", len(l.absent), s)
			}
		}
	}
	if len(ended) != len(k.records) || len(k.m.of[1].absent) != 0 {
		t.Errorf("%d of %d have come to an end; %d are remembered", len(ended), len(k.records), len(k.m.of[1].absent))
	}
}

// An absence counts for one entry: what another one leads to is unknown until it, too, was
// absent for as long. One that ends without a decision is looked for again.
func TestAbsenceIsOfOneEntry(t *testing.T) {
	k := newLooked(1)
	entry := dbadapter.Version{Clock: 1}
	var when []time.Duration
	begun := k.time
	k.verdicts[k.records[0]] = func() (verdict, error) {
		since, _ := k.m.absentSince(1, []byte(k.records[0]), entry, k.time)
		if k.time-since < AbsentFor {
			return awaited, nil
		}
		when = append(when, k.time-begun)
		return undecided, nil
	}
	k.m.met(1)
	for range 6 {
		k.look(t)
	}
	entry.Clock = 2
	for len(when) < 2 && k.time < begun+time.Hour {
		k.look(t)
	}
	// 10 s to the first look, two minutes until the other entry is seen, two more; and two anew.
	if want := []time.Duration{MeetingsSoon + 2*AbsentFor, MeetingsSoon + 3*AbsentFor}; !slices.Equal(when, want) {
		t.Errorf("ended after %v, want %v", when, want)
	}
}

// A key whose wait is over is looked at again where another host is to decide of it by then, also
// where the shard is not looked through otherwise.
func TestLooksAfterOthersWhenAWaitIsOver(t *testing.T) {
	k := newLooked(3)
	awaits, here := true, false
	k.verdicts[k.records[1]] = func() (verdict, error) {
		switch {
		case awaits:
			k.m.absentSince(1, []byte(k.records[1]), dbadapter.Version{}, k.time)
			return awaited, nil
		case !here:
			return deferred, nil
		}
		delete(k.verdicts, k.records[1])
		return decided, nil
	}
	k.m.met(1)
	first := k.time
	until := func(d time.Duration) {
		for k.time < first+d {
			k.look(t)
		}
	}
	until(time.Minute)
	awaits = false
	until(AbsentFor + 30*time.Second) // the other host decides, as it seems
	here = true
	if until(AbsentFor + 5*time.Minute); len(k.verdicts) > 0 {
		t.Fatal("the key that was left to another host is not looked at again")
	}
}

// Looks that something else has begun make the wait for the locator no longer.
func TestLooksAgainSoonBehindOthers(t *testing.T) {
	k := newLooked(3)
	k.unknown = true
	for range 12 { // for two minutes keys go out of the shard
		k.m.met(1)
		k.look(t)
	}
	last, scans := k.time, k.scans
	for k.time < last+meetingsAgain {
		k.look(t)
	}
	if k.scans != scans+1 {
		t.Fatalf("%d looks in the minute after %d that were wanted", k.scans-scans, scans)
	}
	for k.time < last+3*meetingsAgain {
		k.look(t)
	}
	if k.scans != scans+2 {
		t.Fatalf("%d looks in three minutes", k.scans-scans)
	}
}
