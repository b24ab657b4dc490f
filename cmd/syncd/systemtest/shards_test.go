//go:build linux

package systemtest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

var (
	shardsLocator  = flag.Bool("shards-locator", false, "TestShards and TestShardsByInvitation: with a locator")
	shardsKeys     = flag.Int("shards-keys", 200, "how many keys TestShardsByInvitation writes")
	shardsInterval = flag.Duration("shards-interval", time.Second, "the mean pause between background syncs there")
	shardsSeed     = flag.Uint64("shards-seed", 1, "what is written there, and at which daemons")
)

// movePatience is how long shards may take to come to their hosts: an admin's daemon states
// the next layout up to a minute after the members have changed, and a busy machine has
// syncs of all shards to do then.
const movePatience = 5 * time.Minute

// TestShardsByInvitation: five daemons that got there by invitations alone hold the shards
// of one namespace, three each shard. Any of them writes and reads any key, while one is killed
// and comes back, and one is removed for good and goes away. Each shard then has three
// replicas again by itself, and each key reads, at each daemon, as what was acknowledged
// last, or what was is listed as a conflict.
func TestShardsByInvitation(t *testing.T) {
	t.Logf("seed %d", *shardsSeed)
	s := newSharded(t, 5, api.Placement{Kind: "hash", Shards: 32, Replicas: 3, Locator: *shardsLocator})
	s.settled()
	s.write(*shardsKeys, "all are there", "")
	s.read()

	killed := s.daemons[1+s.random.IntN(4)]
	killed.kill()
	s.write(*shardsKeys/2, killed.name+" is away", "")
	killed.restart()
	s.write(*shardsKeys/2, killed.name+" is back", "")
	s.settled()
	s.read()

	// What one host alone has acknowledged goes with it; what two have does not.
	s.write(*shardsKeys, "before one is removed", "all")
	gone := 1 + s.random.IntN(4)
	removed := s.daemons[gone]
	if err := s.daemons[0].api.RemoveMember(t.Context(), namespace, removed.id, false); err != nil {
		t.Fatal(err)
	}
	removed.kill()
	s.daemons = append(s.daemons[:gone], s.daemons[gone+1:]...)
	s.settled()
	s.read()
	s.write(*shardsKeys/2, "four are left", "all")
	s.read()
}

// sharded is daemons of one namespace of shards, and what they have acknowledged.
type sharded struct {
	t            *testing.T
	placement    api.Placement
	daemons      []*daemon
	random       *rand.Rand
	writes       int
	acknowledged map[string]string
	// versions are those of acknowledged.
	versions map[string]string
	// open are the values of writes without an acknowledgement, of the keys whose last write
	// that was: either is right.
	open map[string][]string
}

func newSharded(t *testing.T, n int, p api.Placement) *sharded {
	t.Helper()
	s := &sharded{t: t, placement: p, random: rand.New(rand.NewPCG(*shardsSeed, 0)), acknowledged: map[string]string{}, versions: map[string]string{}, open: map[string][]string{}}
	for range n {
		s.grow(nil)
	}
	return s
}

// grow adds a daemon, in a network of its own if one is given, by an invitation of one of
// those before it.
func (s *sharded) grow(in *network) {
	t := s.t
	t.Helper()
	d := newDaemonIn(t, in, fmt.Sprint("node ", len(s.daemons)), t.TempDir(), *shardsInterval)
	defer func() { s.daemons = append(s.daemons, d) }()
	if len(s.daemons) == 0 {
		if _, err := d.api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace, Placement: &s.placement}); err != nil {
			t.Fatal(err)
		}
		return
	}
	ticket, err := s.daemons[s.random.IntN(len(s.daemons))].api.Invite(t.Context(), api.Invitation{NS: namespace, Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	if joined, err := d.api.Join(t.Context(), ticket); err != nil {
		t.Fatal(err)
	} else if joined.Problem != "" {
		t.Logf("%s: the first sync: %s", d.name, joined.Problem)
	}
}

// settled waits until the daemons, and no others, hold each shard as often as it is to be,
// are sure of all of it, and say so.
func (s *sharded) settled() {
	s.t.Helper()
	began := time.Now()
	for ; ; time.Sleep(100 * time.Millisecond) { // no daemon tells when it is so
		last := s.unsettled()
		if last == "" {
			break
		}
		if time.Since(began) > movePatience {
			s.t.Fatalf("after %s: %s; the log of %s ends with:\n%s", movePatience, last, s.daemons[0].name, s.daemons[0].log.tail())
		}
	}
	s.t.Logf("%d daemons hold %d replicas of %d shards after %s", len(s.daemons), s.placement.Replicas, s.placement.Shards, time.Since(began).Round(10*time.Millisecond))
}

// unsettled says what is not so yet.
func (s *sharded) unsettled() string {
	s.t.Helper()
	held, ids := 0, map[string]bool{}
	for _, d := range s.daemons {
		ids[d.id] = true
	}
	for _, d := range s.daemons {
		status, err := d.api.NamespaceStatus(s.t.Context(), namespace)
		if err != nil {
			s.t.Fatal(err)
		}
		n := status.Shards
		if n == nil || n.Epoch == 0 || n.Held != n.Whole || n.Fetching > 0 || n.Dropping > 0 || n.Moving > 0 || n.Short > 0 || len(status.MemberList) != len(s.daemons) {
			return fmt.Sprintf("%s: %+v of %d members", d.name, n, len(status.MemberList))
		}
		held += n.Held
		layout, err := d.api.Layout(s.t.Context(), namespace)
		if err != nil {
			return err.Error()
		}
		for _, hosts := range layout.Hosts {
			for _, id := range hosts {
				if !ids[id] {
					return fmt.Sprintf("%s: %s is a host", d.name, id)
				}
			}
		}
	}
	if want := s.placement.Shards * s.placement.Replicas; held != want {
		return fmt.Sprintf("%d shards are held in all, and %d are to be", held, want)
	}
	return ""
}

// write has daemons drawn by chance write keys drawn by chance, each key by one writer at a
// time.
func (s *sharded) write(n int, when, ack string) {
	s.t.Helper()
	failed := 0
	for range n {
		s.writes++
		key, value := fmt.Sprintf("key %d", s.random.IntN(*shardsKeys)), fmt.Sprintf("%d, %s", s.writes, when)
		d := s.daemons[s.random.IntN(len(s.daemons))]
		if d.process == nil {
			continue
		}
		version, err := d.api.Put(s.t.Context(), namespace, []byte(key), strings.NewReader(value), client.PutOptions{AckOptions: client.AckOptions{Ack: ack}}, client.Condition{})
		switch {
		case err == nil:
			s.acknowledged[key], s.versions[key], s.open[key] = value, version, nil
		case errors.Is(err, peer.ErrUnconfirmed), errors.Is(err, peer.ErrUnreachable), errors.Is(err, peer.ErrBusy):
			failed++
			s.open[key] = append(s.open[key], value)
		default:
			s.t.Errorf("%s: %v", d.name, err)
		}
	}
	s.t.Logf("%s: %d writes with --ack %q, of them %d without an acknowledgement", when, n, ack, failed)
}

// read compares what each daemon reads with what was acknowledged.
func (s *sharded) read() {
	s.t.Helper()
	var reading sync.WaitGroup
	for _, d := range s.daemons {
		reading.Go(func() {
			for i := range *shardsKeys {
				key := fmt.Sprintf("key %d", i)
				if wrong := s.wrong(d, key); wrong != "" {
					s.t.Errorf("%s reads %q: %s", d.name, key, wrong)
				}
			}
		})
	}
	reading.Wait()
}

// wrong says what is wrong with what a daemon reads.
func (s *sharded) wrong(d *daemon, key string) (wrong string) {
	want, written := s.acknowledged[key]
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // pushes tell no caller when they are over
		value, err := d.api.Get(s.t.Context(), namespace, []byte(key), client.GetOptions{})
		got := string(value.Bytes)
		switch {
		case err == nil && (written && got == want || slices.Contains(s.open[key], got)):
			return ""
		case err == nil && written && s.conflict(key, value.Version):
			return ""
		case err == nil:
			wrong = fmt.Sprintf("%q, and %q was acknowledged", got, want)
		case errors.Is(err, peer.ErrNotFound) && !written:
			return ""
		default:
			wrong = err.Error()
		}
		if time.Since(began) > patience {
			return wrong
		}
	}
}

// conflict reports whether the write that was acknowledged last is kept, and listed, as the
// loser of a conflict with one of a greater version. A daemon that is just back may not have
// heard of the last write yet, and the clocks of daemons that were killed go on a few seconds
// ahead: of two writes that knew nothing of each other the earlier one may win.
func (s *sharded) conflict(key, read string) bool {
	lost := s.versions[key]
	for _, d := range s.daemons {
		kept, err := d.api.Kept(s.t.Context(), namespace, client.Conflicts, "", []byte(key), 0, 100)
		if err != nil {
			s.t.Errorf("%s: %v", d.name, err)
		}
		if lost < read && slices.ContainsFunc(kept.Entries, func(k api.Kept) bool { return k.Version == lost }) {
			s.t.Logf("%q: the last write, %s, lost to %s at %s, which keeps it", key, lost, read, d.name)
			return true
		}
	}
	return false
}
