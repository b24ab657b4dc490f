//go:build linux

package systemtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

var (
	shardsDaemons   = flag.Int("shards-daemons", 3, "how many daemons TestShards has")
	shardsPlacement = flag.String("shards-placement", "hash", "by what placement: hash or writer")
	shardsReplicas  = flag.Int("shards-replicas", 2, "how many hosts each shard has there")
	shardsRecords   = flag.Int("shards-records", 400, "how many records they hold: half of them, at most, Debian's index under the names of releases, and generated ones")
	shardsGets      = flag.Int("shards-gets", 400, "how many keys are looked up then, one in four of which is not there")
)

// TestShards measures look-ups at level one at daemons of one namespace of 32 shards, drawn by
// chance: that no answer is wrong, how many requests to hosts one takes, and how long requests
// of each level take that go to hosts.
func TestShards(t *testing.T) {
	t.Logf("seed %d", *shardsSeed)
	s := newSharded(t, *shardsDaemons, api.Placement{Kind: *shardsPlacement, Shards: 32, Replicas: *shardsReplicas, Locator: *shardsLocator})
	s.settled()
	keys := s.load()
	locates := *shardsLocator || *shardsPlacement == "writer"
	if locates {
		s.heard(keys)
	}
	s.lookUp("one", "keys that are there", keys, *shardsGets*3/4, "")
	if locates {
		s.heard(keys) // look-ups of what is there ask for no news
	}
	asked := s.lookUp("one", "keys that are not", keys, *shardsGets/4, notThere)
	if locates && asked > float64(*shardsGets/4)/100 { // of 4,096 misses one asks
		s.t.Errorf("%.0f of %d misses asked a host", asked, *shardsGets/4)
	}
	s.lookUp("quorum", "keys that are there", keys, *shardsGets/8, "")
	s.lookUp("quorum", "keys that are not", keys, *shardsGets/8, notThere)
	s.costs(keys)
}

// load imports the records, at all daemons at once.
func (s *sharded) load() (keys []string) {
	s.t.Helper()
	index := debianIndex(s.t)
	began := time.Now()
	for _, name := range index.names[:min(len(index.names), *shardsRecords/2)] {
		key := "bookworm/" + name
		s.acknowledged[key] = index.stanzas[name]
		keys = append(keys, key)
	}
	debian := len(keys)
	for i := len(keys); i < *shardsRecords; i++ {
		key := fmt.Sprintf("testing/generated-%d", i)
		if s.acknowledged[key] = valueOf(i); *shardsPlacement == "writer" { // from 20 bytes to 64 KiB; one in eight may leave its key
			size := 20 << (i % 6)
			if i%8 == 0 {
				size = min(20<<(i/8%13), 64<<10)
			}
			s.acknowledged[key] = strings.Repeat(valueOf(i), 1+size/len(valueOf(i)))[:size]
		}
		keys = append(keys, key)
	}
	parts := slices.Collect(slices.Chunk(keys, max(50, min(2000, len(keys)/(4*len(s.daemons))))))
	s.each(2*len(s.daemons), len(parts), func(d *daemon, i int) {
		var lines bytes.Buffer
		for _, key := range parts[i] {
			line, err := json.Marshal(map[string][]byte{"key64": []byte(key), "value64": []byte(s.acknowledged[key])})
			if err != nil {
				s.t.Error(err)
			}
			lines.Write(append(line, '\n'))
		}
		for tries := 1; ; tries++ { // one that has failed is made again: a slow disk can take longer than a write waits
			done, err := d.api.Import(s.t.Context(), api.ImportParams{NSParams: api.OfNS(namespace), Ack: "all"}, lines.Bytes())
			if err == nil && (tries > 1 || done.Written == int64(len(parts[i]))) {
				break
			}
			s.t.Logf("%s: try %d to import %d records: %+v, %v", d.name, tries, len(parts[i]), done, err)
			if tries == 20 {
				s.t.Errorf("%s: %d records are not imported", d.name, len(parts[i]))
				break
			}
		}
	})
	took := time.Since(began)
	s.t.Logf("%d records, %d of them Debian's, in %s: %.0f a second, each acknowledged by all hosts", len(keys), debian, took.Round(time.Millisecond), float64(len(keys))/took.Seconds())
	return keys
}

// each calls do for 0 … n-1, so many at a time of each daemon, which are drawn by chance.
func (s *sharded) each(atOnce, n int, do func(d *daemon, i int)) {
	work := make(chan [2]int)
	var running sync.WaitGroup
	for range atOnce {
		running.Go(func() {
			for w := range work {
				do(s.daemons[w[0]], w[1])
			}
		})
	}
	for i := range n {
		work <- [2]int{s.random.IntN(len(s.daemons)), i}
	}
	close(work)
	running.Wait()
}

// notThere makes keys that are not there of those that are.
const notThere = " is not there"

// heard waits until each daemon has heard of all shards what there is now, which they ask hosts for while keys
// are asked for that are not there.
func (s *sharded) heard(keys []string) {
	s.t.Helper()
	of := map[int]string{} // a key of each shard
	for _, key := range keys {
		l, err := s.daemons[0].api.Locate(s.t.Context(), namespace, []byte(key+notThere), api.ReadParams{})
		if err != nil {
			s.t.Fatal(err)
		}
		if of[l.Shard] = key + notThere; len(of) == s.placement.Shards {
			break
		}
	}
	now := time.Now()
	hears := func(d *daemon, key string) bool {
		l, err := d.api.Locate(s.t.Context(), namespace, []byte(key), api.ReadParams{Read: "one"})
		if err != nil {
			s.t.Error(err)
			return true
		}
		age, err := time.ParseDuration(l.Locator.Age)
		return l.Locator.Where == "here" || l.Locator.Fresh && err == nil && age < time.Since(now)
	}
	var waits sync.WaitGroup
	for _, d := range s.daemons {
		waits.Go(func() {
			for shard, key := range of {
				for !hears(d, key) {
					if time.Since(now) > movePatience {
						s.t.Errorf("after %s %s has not heard shard %d", movePatience, d.name, shard)
						return
					}
					time.Sleep(100 * time.Millisecond) // no daemon tells when it is so
				}
			}
		})
	}
	waits.Wait()
	for _, d := range s.daemons {
		s.t.Logf("%s has %.0f keys in %.0f bytes", d.name, d.metric("syncd_locator_keys"), d.metric("syncd_locator_bytes"))
	}
}

// lookUp reads n keys at a level, with that suffix, and tells what was asked for them, and how many were answered by others.
func (s *sharded) lookUp(level, what string, keys []string, n int, suffix string) (others float64) {
	s.t.Helper()
	draws := make([]string, n)
	for i := range draws {
		draws[i] = keys[s.random.IntN(len(keys))] + suffix
	}
	began, before := time.Now(), s.requests()
	s.each(4, len(draws), func(d *daemon, i int) {
		value, err := d.api.Get(s.t.Context(), namespace, []byte(draws[i]), api.ReadParams{Read: level})
		want, there := s.acknowledged[draws[i]]
		switch {
		case there && err == nil && string(value.Bytes) == want:
		case !there && errors.Is(err, peer.ErrNotFound):
		default:
			s.t.Errorf("%s reads %.60q of %q: %v", d.name, value.Bytes, draws[i], err)
		}
	})
	took, after := time.Since(began), s.requests()
	here, asked, reads := after.here-before.here, after.asked-before.asked, after.reads-before.reads
	s.t.Logf("%d look-ups at level %s of %s, in %s: %.0f were answered by the daemon itself, %.0f by hosts, with %.4f requests each",
		n, level, what, took.Round(time.Millisecond), here, asked, reads/asked)
	if level == "one" && int(here+asked) != n {
		s.t.Errorf("%d look-ups, and the daemons tell of %.0f", n, here+asked)
	}
	return asked
}

// costs measures requests at a daemon that hosts nothing of the key, by level, beside a get at a
// host, in turns: over the same link of the client, in the same state of the machine.
func (s *sharded) costs(keys []string) {
	s.t.Helper()
	of := map[string]*daemon{}
	for _, d := range s.daemons {
		of[d.id] = d
	}
	get := func(d *daemon, key, level string) error {
		_, err := d.api.Get(s.t.Context(), namespace, []byte(key), api.ReadParams{Read: level})
		return err
	}
	put := func(d *daemon, key, level string) error {
		_, err := d.api.Put(s.t.Context(), api.PutParams{RecordParams: api.Record(namespace, []byte(key)), Ack: level}, strings.NewReader(s.acknowledged[key]))
		return err
	}
	what := []struct {
		name   string
		beside int // another one of these
		do     func(host, other *daemon, key string) error
	}{
		{"a get at a host at level one", 0, func(host, _ *daemon, key string) error { return get(host, key, "one") }},
		{"a get at level one", 0, func(_, other *daemon, key string) error { return get(other, key, "one") }},
		{"a get at quorum", 1, func(_, other *daemon, key string) error { return get(other, key, "quorum") }},
		{"a put at level one", 3, func(_, other *daemon, key string) error { return put(other, key, "one") }},
		{"a put at quorum", 3, func(_, other *daemon, key string) error { return put(other, key, "quorum") }},
	}
	times := make([][]time.Duration, len(what))
	for turn := range min(3000, *shardsGets) {
		key := keys[s.random.IntN(len(keys))]
		l, err := s.daemons[0].api.Locate(s.t.Context(), namespace, []byte(key), api.ReadParams{})
		if err != nil {
			s.t.Fatal(err)
		}
		var others []*daemon
		for _, d := range s.daemons {
			if !slices.Contains(l.Hosts, d.id) {
				others = append(others, d)
			}
		}
		host, other := of[l.Hosts[0]], others[s.random.IntN(len(others))]
		order := []int{0, 1, 2, 3, 4}
		if turn%2 == 1 { // who comes later finds the way warm, and the key in caches
			order = []int{2, 1, 0, 4, 3}
		}
		for _, i := range order {
			w, began := what[i], time.Now()
			if err := w.do(host, other, key); err != nil {
				s.t.Errorf("%s at %s: %v", w.name, other.name, err)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	middle := func(all []time.Duration) time.Duration { slices.Sort(all); return all[len(all)/2] }
	for i, w := range what {
		took, beside := middle(times[i]), middle(times[w.beside])
		s.t.Logf("%s takes %s, median of %d; %.2f times what %s takes", w.name, took, len(times[i]), float64(took)/float64(beside), what[w.beside].name)
	}
}

// requests are counts of all daemons.
type requests struct{ here, asked, reads float64 }

func (s *sharded) requests() (sum requests) {
	s.t.Helper()
	for _, d := range s.daemons {
		here := d.metric("syncd_lookups_total", `result="local"`)
		sum.here += here
		sum.asked += d.metric("syncd_lookups_total") - here
		sum.reads += d.metric("syncd_routed_requests_total", `kind="read"`)
	}
	return sum
}
