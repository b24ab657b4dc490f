package node

import (
	"slices"
	"testing"
	"time"
)

// A shard is looked through again where the locator could not tell of a key: after a minute, and
// less and less often while that stays so. A key that it places elsewhere then is decided.
func TestLooksAgainForTheLocator(t *testing.T) {
	k := newLooked(3)
	k.unknown = true
	k.m.met(1)
	first := k.time
	for k.time < first+time.Hour {
		k.look(t)
	}
	if k.scans != 9 { // at once, and after 1, 3, 7, 15, 25, 35, 45 and 55 minutes
		t.Fatalf("%d looks in an hour in which the locator could not tell", k.scans)
	}
	k.unknown = false
	k.verdicts[k.records[1]] = func() (verdict, error) {
		delete(k.verdicts, k.records[1])
		return decided, nil
	}
	for since := k.time; len(k.asked) == 0; k.look(t) {
		if k.time > since+meetingsEvery {
			t.Fatal("it was not looked at once the locator could tell")
		}
	}
	scans := k.scans
	for range 1000 {
		k.look(t)
	}
	if k.scans != scans {
		t.Fatalf("%d looks after it, when nothing was open", k.scans-scans)
	}
}

// A shard is looked through a minute after this node has come to hold it, or has started; and
// again, less and less often, while a key is left to another host, which may go away.
func TestLooksAfterOthers(t *testing.T) {
	k := newLooked(3)
	k.m.of = nil
	here := false
	k.verdicts[k.records[1]] = func() (verdict, error) {
		if !here {
			return deferred, nil
		}
		delete(k.verdicts, k.records[1])
		return decided, nil
	}
	first := k.time
	until := func(d time.Duration) {
		for k.time < first+d {
			k.look(t)
		}
	}
	if until(meetingsAgain); k.scans != 0 {
		t.Fatalf("%d looks in the first minute", k.scans)
	}
	if until(10 * time.Minute); k.scans != 4 { // after 1, 2, 4 and 8 minutes
		t.Fatalf("%d looks in ten minutes", k.scans)
	}
	here = true
	if until(30 * time.Minute); k.scans != 5 || len(k.verdicts) > 0 {
		t.Fatalf("%d looks in 30 minutes, and %d keys are not decided", k.scans, len(k.verdicts))
	}
}

// What the locator places in a shard is verified once in ten minutes, however often that is looked at, and
// also while looks leave something open. A key that turns out to be elsewhere is decided in the next look.
func TestLooksVerify(t *testing.T) {
	k := newLooked(3)
	every := func(d time.Duration) {
		for until := k.time + d; k.time < until; {
			k.m.met(1)
			k.look(t)
		}
	}
	if every(30 * time.Minute); k.verified != 3 || k.scans != 180 {
		t.Fatalf("%d times in %d looks of half an hour", k.verified, k.scans)
	}
	k.unknown = true
	if every(10 * time.Minute); k.verified != 4 {
		t.Fatalf("%d times in ten minutes in which looks left something open", k.verified-3)
	}
	k.unknown, k.chance = false, k.records[1]
	for range 60 { // ten minutes
		k.m.met(1)
		if k.look(t); len(k.asked) > 0 {
			break
		}
	}
	if !slices.Equal(k.asked, k.records[1:2]) {
		t.Fatalf("decided: %q", k.asked)
	}
}
