//go:build linux

package systemtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

var (
	shardsLocator  = flag.Bool("shards-locator", false, "TestShards: with a locator")
	shardsInterval = flag.Duration("shards-interval", time.Second, "TestShards and TestShardsInUse: the mean pause between background syncs")
	shardsSeed     = flag.Uint64("shards-seed", 1, "TestShards and TestShardsInUse: what is written, and at which daemons")
)

// movePatience is how long shards may take to come to their hosts: an admin's daemon states
// the next layout up to a minute after the members have changed, and a busy machine has
// syncs of all shards to do then.
const movePatience = 5 * time.Minute

// sharded is daemons of one namespace of shards, and what they have acknowledged.
type sharded struct {
	t            *testing.T
	placement    api.Placement
	daemons      []*daemon
	random       *rand.Rand
	acknowledged map[string]string
}

func newSharded(t *testing.T, n int, p api.Placement) *sharded {
	t.Helper()
	s := &sharded{t: t, placement: p, random: rand.New(rand.NewPCG(*shardsSeed, 0)), acknowledged: map[string]string{}}
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
		d.create(&s.placement)
		return
	}
	s.daemons[s.random.IntN(len(s.daemons))].invite(d, "admin")
}

// settled waits until the daemons, and no others, hold each shard as often as it is to be,
// are sure of all of it, and say so.
func (s *sharded) settled() {
	s.t.Helper()
	began := time.Now()
	last := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s; the log of %s ends with:\n%s", last, s.daemons[0].name, s.daemons[0].log.tail())
		}
	}()
	until(s.t, "all are settled", func() bool { last = s.unsettled(); return last == "" })
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
		status, err := client.Ask(s.t.Context(), d.api, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(namespace)})
		if err != nil {
			s.t.Fatal(err)
		}
		n := status.Shards
		if n == nil || n.Epoch == 0 || n.Held != n.Whole || n.Fetching > 0 || n.Dropping > 0 || n.Moving > 0 || n.Short > 0 || len(status.MemberList) != len(s.daemons) {
			return fmt.Sprintf("%s: %+v of %d members", d.name, n, len(status.MemberList))
		}
		held += n.Held
		layout, err := client.Ask(s.t.Context(), d.api, api.GetLayout, api.OfNS(namespace))
		if err != nil {
			return err.Error()
		}
		for _, hosts := range layout.Hosts {
			for _, id := range hosts {
				if !ids[id.String()] {
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
