package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
)

func putFor(ns *Namespace, key string, ttl time.Duration) (dbadapter.Version, error) {
	d := draft(key, "v")
	d.TTL = ttl
	return commit(ns.Sets()[0].Write(d))
}

// A record expires the whole millisecond that its time to live is over, by the
// reader's clock, and not before.
func TestTTL(t *testing.T) {
	m, ns := newNotes(Policy{})
	for ttl, want := range map[time.Duration]time.Duration{
		1:                                    time.Millisecond,
		time.Millisecond:                     time.Millisecond,
		time.Millisecond + 1:                 2 * time.Millisecond,
		90 * time.Minute:                     90 * time.Minute,
		MaxTTL - 500*365*24*time.Microsecond: (MaxTTL - 500*365*24*time.Microsecond).Truncate(time.Millisecond),
		MaxTTL:                               MaxTTL,
	} {
		m.clock = noon
		must(putFor(ns, "k", ttl))
		r := must(get(ns, "k"))
		if got := r.Expires.Time().Sub(noon); got != want {
			t.Errorf("a time to live of %s gives an expiry in %s, want %s", ttl, got, want)
		}
		m.clock = r.Expires.Time().Add(-1)
		if !ns.Present(&r) || ns.Absent(&r) != nil {
			t.Errorf("%s: absent before its expiry", ttl)
		}
		m.clock = r.Expires.Time()
		if ns.Present(&r) || !errors.Is(ns.Absent(&r), dbadapter.ErrExpired) {
			t.Errorf("%s: present at its expiry", ttl)
		}
	}
	m.clock = noon
	must(put(ns, "k", "v"))
	if r := must(get(ns, "k")); r.Expires != 0 {
		t.Errorf("a put over a record that expires has its expiry: %s", r.Expires.Time())
	}
	for name, c := range map[string]struct {
		d    Draft
		want error
	}{
		"negative":    {Draft{Record: draft("k", "").Record, TTL: -1}, ErrInvalid},
		"too long":    {Draft{Record: draft("k", "").Record, TTL: MaxTTL + 1}, dbadapter.ErrLimit},
		"a tombstone": {Draft{Record: dbadapter.Record{Key: []byte("k"), Deleted: true}, TTL: 1}, ErrInvalid},
	} {
		if _, err := ns.Sets()[0].Write(draft("good", ""), c.d); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An expired record holds its key as a tombstone does: conditions and deletions meet
// it, and a write puts a record in its place.
func TestWritesOverExpired(t *testing.T) {
	m, ns := newNotes(Policy{})
	old := must(putFor(ns, "k", time.Second))
	m.clock = m.clock.Add(time.Second)
	_, err := commit(ns.Sets()[0].Delete([]byte("k")))
	if !errors.Is(err, dbadapter.ErrExpired) || !strings.Contains(err.Error(), "expired at 2026-03-01T12:00:01Z, version "+old.String()) {
		t.Errorf("delete: %v", err)
	}
	conditional := func(held dbadapter.Version) error {
		d := draft("k", "new")
		d.If = &held
		_, err := commit(ns.Sets()[0].Write(d))
		return err
	}
	if err := conditional(dbadapter.Version{}); !errors.Is(err, dbadapter.ErrConflict) || !strings.Contains(err.Error(), old.String()) {
		t.Errorf("on the condition that the key holds nothing: %v", err)
	}
	wantErr(t, conditional(old), nil, "on the condition of the expired record")
	if r := must(get(ns, "k")); !ns.Present(&r) || r.Expires != 0 || string(r.Value) != "new" {
		t.Errorf("held %+v", r)
	}
}

// A write that was overtaken lives as long as was asked from the try that succeeds.
func TestTTLOfAnOvertakenWrite(t *testing.T) {
	m, ns := newNotes(Policy{})
	must(put(ns, "k", "0"))
	overtake(m, 2)
	overtaking := m.apply
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		m.clock = m.clock.Add(time.Second)
		return overtaking(store, writes)
	}
	must(putFor(ns, "k", time.Minute))
	if r := must(get(ns, "k")); r.Expires.Time() != noon.Add(2*time.Second+time.Minute) {
		t.Errorf("it expires at %s", r.Expires.Time())
	}
}

// Members agree on an expired record, and each reads it by its own clock.
func TestExpiredRecordsSync(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	must(putFor(sa, "k", time.Second))
	a.clock = a.clock.Add(time.Minute) // b's clock stands still
	if report, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || !report.Verified {
		t.Fatalf("%+v, %v", report, err)
	}
	ra, rb := must(get(sa, "k")), must(get(sb, "k"))
	if ra.Compare(&rb) != 0 || sa.Present(&ra) || !sb.Present(&rb) {
		t.Errorf("held %+v and %+v", ra, rb)
	}
}
