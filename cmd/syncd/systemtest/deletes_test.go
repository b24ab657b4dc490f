//go:build linux

package systemtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

// until waits for something to become so. It looks again with each step of a sync that
// one of the daemons logs, and now and then: a push is no step.
func until(t *testing.T, what string, so func() bool, of ...*daemon) {
	t.Helper()
	began := time.Now()
	syncs, late := make(chan struct{}, 1), time.After(patience)
	for _, d := range of {
		d.log.follow(syncs)
	}
	for !so() {
		select {
		case <-syncs:
		case <-time.After(100 * time.Millisecond):
		case <-late:
			t.Fatalf("after %s: not so: %s", patience, what)
		}
	}
	t.Logf("%s: after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// collection is what gc --dry-run says.
func (d *daemon) collection() (c api.Collection) {
	d.t.Helper()
	out := d.command(nil, "gc", namespace, "--dry-run", "-o", "json")
	if err := json.Unmarshal(out, &c); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	return c
}

// held is how many records a daemon holds, tombstones included.
func (d *daemon) held() int64 {
	d.t.Helper()
	status, err := client.Ask(d.t.Context(), d.api, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(namespace)})
	if err != nil {
		d.t.Fatal(err)
	}
	return status.Records
}

// What is deleted on one of three daemons is gone from the disks of all, tombstones
// included, within seconds, and a sync afterwards moves nothing. A daemon that is
// away holds the next deletions back and is named; once it has lapsed they go, and
// when it comes back nothing does.
func TestDeletesStayDeleted(t *testing.T) {
	const records, deleted = 200, 100
	var three []*daemon
	for i := range 3 {
		three = append(three, newDaemonEvery(t, fmt.Sprint("node ", i), t.TempDir(), 500*time.Millisecond))
	}
	a, b, c := three[0], three[1], three[2]
	join(a, b)
	a.invite(c, "write")
	put := func(d *daemon, n int) {
		t.Helper()
		if _, err := d.api.Put(t.Context(), api.PutParams{RecordParams: api.Record(namespace, fmt.Appendf(nil, "key %03d", n))}, strings.NewReader("value")); err != nil {
			t.Fatal(err)
		}
	}
	del := func(d *daemon, n int) {
		t.Helper()
		d.command(nil, "del", namespace, fmt.Sprintf("key %03d", n))
	}
	for n := range records {
		put(three[n%3], n)
	}
	everywhere := func(n int64, of ...*daemon) func() bool {
		return func() bool {
			for _, d := range of {
				if d.held() != n {
					return false
				}
			}
			return true
		}
	}
	until(t, "all hold all", everywhere(records, three...), three...)
	for n := range deleted {
		del(b, n)
	}
	until(t, "the tombstones are gone", everywhere(records-deleted, three...), three...)
	if r := a.syncNow(b); r.Applied+r.Sent != 0 {
		t.Errorf("a sync of those that have collected moved records: %+v", r)
	}
	until(t, "nothing waits", func() bool {
		got := a.collection()
		return got.Waiting == 0 && !got.Floor.IsZero() && len(got.Holding) == 0
	}, a)

	c.kill()
	del(a, deleted)
	var got api.Collection
	defer func() {
		if t.Failed() {
			t.Logf("%+v", got)
		}
	}()
	until(t, "the one that is away is named", func() bool {
		got = a.collection()
		return len(got.Holding) == 1 && got.Holding[0].Member.String() == c.id && got.Holding[0].Reason != "" && !got.Holding[0].Synced.IsZero() && got.Waiting > 0
	}, a)
	a.command(nil, "member", "lapse", namespace, c.id)
	until(t, "what it held back is gone", everywhere(records-deleted-1, a, b), a, b)
	c.restart()
	until(t, "it has caught up", everywhere(records-deleted-1, three...), three...)
	if a.export() != c.export() || b.export() != c.export() {
		t.Error("the exports differ")
	}
	del(c, deleted+1)
	until(t, "it takes part again", everywhere(records-deleted-2, three...), three...)
}
