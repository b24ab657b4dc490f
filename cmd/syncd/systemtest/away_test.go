//go:build linux

package systemtest

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var (
	awayRecords = flag.Int("away-records", 3000, "how many records all hold in TestAway before one of them is killed")
	awayChanges = flag.Int("away-changes", 1500, "how many of them the others change before it comes back")
	awayValue   = flag.Int("away-value", 1000, "how many bytes the changed values have in TestAway")
)

// TestAway: a daemon that was away meets six peers at once, which call it while it calls
// them. Each of them could send all values that changed meanwhile: it is sent each once.
func TestAway(t *testing.T) {
	const peers = 6
	in := newNetwork(t)
	var all []*daemon
	for i := range peers + 1 {
		d := newDaemonIn(t, in, fmt.Sprint("node ", i), t.TempDir(), liveInterval, "--memory", "512MiB")
		all = append(all, d)
		if i == 0 {
			if _, err := d.api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace, Unsigned: true}); err != nil {
				t.Fatal(err)
			}
			fill(d, 0, *awayRecords, 'a')
			continue
		}
		ticket, err := all[0].api.Invite(t.Context(), api.Invitation{NS: namespace, Role: "write"})
		if err != nil {
			t.Fatal(err)
		}
		if joined, err := d.api.Join(t.Context(), ticket); err != nil {
			t.Fatal(err)
		} else if joined.Problem != "" {
			t.Logf("%s: the first sync: %s", d.name, joined.Problem)
		}
	}
	alike := func(what string, of []*daemon) {
		t.Helper()
		most := patience + time.Duration(*awayRecords)*time.Millisecond // on a machine that does much else
		untilWithin(t, most, what, func() bool {
			digests := map[string]bool{}
			for _, d := range of {
				status, err := d.api.NamespaceStatus(t.Context(), namespace)
				if err != nil {
					t.Fatal(err)
				}
				if len(status.MemberList) != len(all) || slices.ContainsFunc(status.MemberList, unaddressed) {
					return false
				}
				digests[status.Digest] = true
			}
			return len(digests) == 1
		}, of...)
	}
	alike("all hold the records", all)

	away, others := all[peers], all[:peers]
	away.kill()
	each := *awayChanges / peers
	for i, d := range others { // spread over all keys
		fillEvery(d, i*each, (i+1)*each, *awayRecords / *awayChanges, strings.Repeat("b", *awayValue))
	}
	alike("the six hold the changes", others)
	for _, d := range others {
		d.rested()
	}
	time.Sleep(*liveWarm) // what was pushed may still be on its way, which is not counted

	before := in.bytes()
	began := time.Now()
	away.restart()
	var calls sync.WaitGroup
	for _, d := range others {
		for _, pair := range [][2]*daemon{{away, d}, {d, away}} {
			calls.Go(func() {
				if _, err := pair[0].sync(pair[1]); err != nil && !errors.Is(err, peer.ErrBusy) {
					t.Errorf("%s with %s: %v", pair[0].name, pair[1].name, err)
				}
			})
		}
	}
	calls.Wait()
	alike("it holds the changes", all)
	for _, d := range all {
		d.rested()
	}
	took := time.Since(began)
	moved := in.bytes() - before
	var records float64
	syncs, err := away.api.Syncs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syncs {
		records += float64(s.Report.RecordBytes)
	}
	once := float64(*awayChanges / peers * peers * sizeOfChange())
	t.Logf("%d records, %d changed: %.0f bytes of records came, %.3f times those of the changes; on all wires %.0f, %.3f times; equal after %s; the one that was away had at most %d MiB resident",
		*awayRecords, *awayChanges, records, records/once, moved, moved/once, took.Round(time.Millisecond), taken(t, away.process.Process.Pid).peak>>20)
	// What is as new as the other side's to within 64 seconds travels on suspicion, up to 64 KiB.
	if ratio := records / once; ratio < 1 || ratio > 1.1+(peers+1)*float64(1<<16)/once {
		t.Errorf("%.3f times the bytes of the changes came", ratio)
	}
}

// unaddressed reports whether a daemon cannot dial a member yet: its addresses stand beside
// the list of members and the records, and come with a sync of their own.
func unaddressed(m api.Member) bool { return !m.Self && len(m.Addrs) == 0 }

// sizeOfChange is how many bytes a changed record of TestAway takes in a sync.
func sizeOfChange() int {
	return len(wire.AppendPushed(nil, &dbadapter.Record{
		Key: keyOf(0), Value: make([]byte, *awayValue), Version: dbadapter.Version{Clock: 1, Writer: 1, Incarnation: 1},
	}))
}
