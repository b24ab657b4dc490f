//go:build linux

package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
)

var (
	useKeys      = flag.Int("use-keys", 300, "how many keys TestShardsInUse has")
	useTime      = flag.Duration("use-time", 0, "for how long it makes faults drawn by chance; 0: a few, in order")
	usePlacement = flag.String("use-placement", "hash", "by what placement: hash, or writer, with values from 20 bytes to 64 KiB")
	usePhase     = flag.Duration("use-phase", 30*time.Second, "after these, for how long one host is down, hangs, and is cut off")
)

// TestShardsInUse: six daemons that met by invitations, each on a machine of its own, take requests of
// all kinds and levels, while one joins, one is killed and comes back, one is removed for good, and
// the network falls into two parts and heals; or, with -use-time, while hosts are also paused and cut
// off, lapse and come back, and lose their role. What is promised holds for each request, all moves
// end, and all exports are equal in the end. docs/PERFORMANCE.md has the flags of its figures.
func TestShardsInUse(t *testing.T) {
	t.Logf("seed %d", *shardsSeed)
	u := newUse(t)
	stop := u.run(u.mixed)
	if *useTime > 0 {
		u.faults()
	} else {
		u.inOrder()
	}
	u.settle()
	u.say("requests by exit code: %v", u.h.ends())
	stop()
	u.equal()
	if *useTime > 0 {
		u.phases()
	}
	if *logsDir != "" {
		if err := u.h.save(filepath.Join(*logsDir, "history")); err != nil {
			t.Error(err)
		}
	}
	wrong := u.h.check()
	for _, w := range wrong[:min(len(wrong), 50)] {
		t.Error(w)
	}
	t.Logf("%d requests, %d violations, %d entries were listed", len(u.h.all), len(wrong), len(u.h.listed))
}

// use is a cluster, its users, and the faults that are under way.
type use struct {
	*sharded
	h        *history
	began    time.Time
	machines []*network // that no daemon has had
	values   atomic.Int64
	groups   [][]string // keys of one shard

	mu    sync.Mutex // guards what follows
	up    map[*daemon]bool
	away  map[*daemon]bool // hosts that only a new layout lets go
	later []later
	cut   []*network
	hung  map[*daemon]bool
	last  map[string]string
}

// later is the end of a fault.
type later struct {
	at   time.Time
	what string
	do   func()
}

func newUse(t *testing.T) *use {
	machines := newMachines(t, 7+int(*useTime/(2*time.Minute))) // one joins in some minutes
	u := &use{sharded: newSharded(t, 0, api.Placement{Kind: *usePlacement, Shards: 32, Replicas: 3}), machines: machines[6:], h: &history{listed: map[[2]string]bool{}}, began: time.Now(), up: map[*daemon]bool{}, away: map[*daemon]bool{}, hung: map[*daemon]bool{}, last: map[string]string{}}
	for _, n := range machines[:6] {
		u.grow(n)
	}
	u.settled()
	for _, d := range u.daemons {
		u.up[d] = true
	}
	groups := map[int][]string{}
	for i := range *useKeys {
		key := fmt.Sprint("key ", i)
		l, err := u.daemons[0].api.Locate(t.Context(), namespace, []byte(key), api.ReadParams{})
		if err != nil {
			t.Fatal(err)
		}
		groups[l.Shard] = append(groups[l.Shard], key)
	}
	for _, g := range groups {
		if len(g) > 1 {
			u.groups = append(u.groups, g)
		}
	}
	return u
}

func (u *use) now() time.Duration { return time.Since(u.began) }

func (u *use) say(format string, a ...any) {
	u.t.Logf("%8.1f s: %s", u.now().Seconds(), fmt.Sprintf(format, a...))
}

// run has users of each daemon make requests until it is stopped, and a person look at what is listed.
func (u *use) run(request func(*daemon, *rand.Rand)) (stop func()) {
	ctx, cancel := context.WithCancel(u.t.Context())
	var running sync.WaitGroup
	for slot := range 32 {
		random := rand.New(rand.NewPCG(*shardsSeed, uint64(100+slot)))
		running.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
				u.mu.Lock()
				var d *daemon
				if i := slot % 8; i < len(u.daemons) && u.up[u.daemons[i]] {
					d = u.daemons[i]
				}
				u.mu.Unlock()
				if d != nil {
					request(d, random)
				}
			}
		})
	}
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(2 * time.Second) {
			u.look()
		}
	})
	return func() { cancel(); running.Wait(); u.look() }
}

// look notes what is listed at each daemon, and forgets it there: it would hold shards at hosts that are to leave them.
func (u *use) look() {
	u.mu.Lock()
	all := slices.Clone(u.daemons)
	u.mu.Unlock()
	var looking sync.WaitGroup
	for _, d := range all {
		looking.Go(func() { u.lookAt(d) })
	}
	looking.Wait()
}

func (u *use) lookAt(d *daemon) {
	for _, list := range []string{api.Conflicts, api.Rejected} {
		ctx, cancel := context.WithTimeout(u.t.Context(), 5*time.Second)
		kept, err := client.Ask(ctx, d.api, api.ListKept(list), api.KeptListParams{NSParams: api.OfNS(namespace), Limit: 1000})
		if err == nil && len(kept.Entries) > 0 {
			u.h.mu.Lock()
			through := uint64(0)
			for _, e := range kept.Entries {
				through = max(through, e.Seq)
				u.h.listed[[2]string{*e.Key.Key, e.Version}] = true
			}
			u.h.mu.Unlock()
			_, _ = client.Ask(ctx, d.api, api.ForgetAllKept(list), api.ForgetParams{NSParams: api.OfNS(namespace), Through: through})
		}
		cancel()
	}
}

var levels = []string{"one", "quorum", "quorum", "quorum", "all"}

// mixed is a request of any kind.
func (u *use) mixed(d *daemon, random *rand.Rand) {
	key := fmt.Sprint("key ", random.IntN(*useKeys))
	if random.IntN(4) == 0 {
		key = fmt.Sprint("key ", random.IntN(10))
	}
	level := levels[random.IntN(len(levels))]
	if *usePlacement == "writer" && random.IntN(64) == 0 {
		u.atOnce(random)
		return
	}
	switch random.IntN(16) {
	case 0, 1, 2, 3:
		u.put(d, key, level, "")
	case 4, 5:
		u.do(d, &op{Kind: "del", Level: level, Key: key}, func(ctx context.Context, o *op) (err error) {
			o.Version, err = d.api.Delete(ctx, api.DeleteParams{RecordParams: api.Record(namespace, []byte(key)), Ack: level})
			return err
		})
	case 6, 7, 8:
		if base := u.get(d, key, "quorum", ""); base.Exit == 0 {
			u.put(d, key, "quorum", base.Version)
		} else if base.Exit == 4 && base.Version == "" {
			u.put(d, key, "quorum", ifAbsent)
		}
	case 9:
		u.batch(d, random)
	case 10:
		u.mu.Lock()
		least := u.last[key]
		u.mu.Unlock()
		u.get(d, key, "one", least)
	default:
		u.get(d, key, level, "")
	}
}

func (u *use) do(d *daemon, o *op, request func(context.Context, *op) error) *op {
	ctx, cancel := context.WithTimeout(u.t.Context(), 20*time.Second)
	defer cancel()
	o.At, o.Start = d.name, u.now()
	err := request(ctx, o)
	o.End = u.now()
	o.Exit = problem.Exit(err)
	var p *problem.Problem
	var lost *client.UnansweredError
	switch {
	case errors.As(err, &p):
		o.Err = p.Detail
		if o.Version == "" {
			o.Version = p.Version
		}
	case errors.As(err, &lost), ctx.Err() != nil, errors.Is(err, problem.ErrNoDaemon):
		o.Exit, o.Err = unanswered, err.Error()
	case err != nil:
		o.Err = err.Error()
	}
	if o.writes() && o.Exit != 0 && o.Exit != 8 { // what is told then is what the key holds
		o.Version = ""
	}
	if !slices.Contains([]int{0, 4, 5, 6, 8, 10, unanswered}, o.Exit) {
		u.t.Errorf("%+v", *o)
	}
	u.h.add(o)
	return o
}

func (u *use) put(d *daemon, key, level, condition string) *op {
	value := u.value()
	kind := "put"
	match, noneMatch := "", ""
	switch {
	case condition == ifAbsent:
		kind, noneMatch = "putif", "*"
	case condition != "":
		kind, match = "putif", condition
	}
	o := u.do(d, &op{Kind: kind, Level: level, Key: key, Value: told(value), If: condition}, func(ctx context.Context, o *op) (err error) {
		o.Version, err = d.api.Put(ctx, api.PutParams{RecordParams: api.Record(namespace, []byte(key)), Ack: level, IfMatch: match, IfNoneMatch: noneMatch}, strings.NewReader(value))
		return err
	})
	if o.Exit == 0 {
		u.mu.Lock()
		u.last[key] = o.Version
		u.mu.Unlock()
	}
	return o
}

func (u *use) get(d *daemon, key, level, least string) *op {
	return u.do(d, &op{Kind: "get", Level: level, Key: key, If: least}, func(ctx context.Context, o *op) error {
		v, err := d.api.Get(ctx, namespace, []byte(key), api.ReadParams{Read: level, AtLeast: least})
		if o.Version = v.Version; err == nil {
			o.Value = told(string(v.Bytes))
		}
		return err
	})
}

// batch writes some keys of one shard, and deletes one in four.
func (u *use) batch(d *daemon, random *rand.Rand) {
	group := u.groups[random.IntN(len(u.groups))]
	var items []api.BatchItem
	var ops []*op
	for _, i := range random.Perm(len(group))[:min(len(group), 3)] {
		o := &op{Kind: "batch", Level: "quorum", Key: group[i]}
		item := api.BatchItem{Key: api.KeyOf([]byte(o.Key))}
		if random.IntN(4) == 0 {
			item.Delete = true
		} else {
			o.Value = fmt.Sprint("value ", u.values.Add(1))
			item.Value = &o.Value
		}
		items, ops = append(items, item), append(ops, o)
	}
	list, err := json.Marshal(items)
	if err != nil {
		u.t.Error(err)
	}
	var versions []string
	first := u.do(d, ops[0], func(ctx context.Context, o *op) (err error) {
		if versions, err = d.api.Batch(ctx, namespace, list, ""); err == nil {
			o.Version = versions[0]
		}
		return err
	})
	for i, o := range ops[1:] {
		o.At, o.Start, o.End, o.Exit = first.At, first.Start, first.End, first.Exit
		if o.Exit == 0 {
			o.Version = versions[1+i]
		}
	}
	u.h.add(ops[1:]...)
}

// after notes what ends a fault.
func (u *use) after(d time.Duration, what string, do func()) {
	u.later = append(u.later, later{time.Now().Add(d), what, do})
}

// due ends what is to end by now, or all.
func (u *use) due(all bool) {
	for i := 0; i < len(u.later); {
		if l := u.later[i]; all || time.Now().After(l.at) {
			u.later = slices.Delete(u.later, i, i+1)
			u.say("%s", l.what)
			l.do()
			i = 0
			continue
		}
		i++
	}
}

// healthy is one daemon, drawn by chance, that runs; nil if too few do.
func (u *use) healthy() *daemon {
	var all []*daemon
	for _, d := range u.daemons {
		if u.up[d] && d.process != nil && !u.hung[d] {
			all = append(all, d)
		}
	}
	if len(all) <= 3 {
		return nil
	}
	return all[u.random.IntN(len(all))]
}

func (u *use) set(d *daemon, up bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.up[d] = up
}

func (u *use) kill(d *daemon, back time.Duration) {
	u.say("%s is killed", d.name)
	u.set(d, false)
	d.kill()
	if back > 0 {
		u.after(back, d.name+" starts", func() { d.restart(); u.set(d, true) })
	}
}

func (u *use) hang(d *daemon, back time.Duration) {
	u.say("%s hangs", d.name)
	_ = d.process.Process.Signal(syscall.SIGSTOP)
	u.hung[d] = true
	u.after(back, d.name+" goes on", func() { _ = d.process.Process.Signal(syscall.SIGCONT); delete(u.hung, d) })
}

func (u *use) split(one, other []*network, back time.Duration) {
	if len(u.cut) > 0 || len(one) == 0 || len(other) == 0 {
		return
	}
	part(one, other)
	u.cut = append(slices.Clone(one), other...)
	u.after(back, "the network heals", u.heal)
}

func (u *use) heal() {
	for _, n := range u.cut {
		n.heal()
	}
	u.cut = nil
}

func (u *use) names(in []*network) (names []string) {
	for _, d := range u.daemons {
		if slices.Contains(in, d.network) {
			names = append(names, d.name)
		}
	}
	return names
}

// inOrder are the faults of a short run.
func (u *use) inOrder() {
	change := func(what int) {
		until(u.t, "the members are changed", func() bool { return u.change(what) })
		until(u.t, "no shard moves", u.moved)
	}
	change(joins)
	u.kill(u.healthy(), 2*time.Second)
	time.Sleep(2 * time.Second) // requests go on: it is what is tested
	u.due(true)
	change(removal)
	var all []*network
	for _, d := range u.daemons {
		all = append(all, d.network)
	}
	u.split(all[:2], all[2:], 2*time.Second)
	time.Sleep(2 * time.Second)
	u.due(true)
}

// faults happen for a time: one each few seconds, and changes of the members one after the other beside them.
func (u *use) faults() {
	end := time.Now().Add(*useTime)
	members := time.Now().Add(5 * time.Second)
	step := 0
	for time.Now().Before(end) {
		back := time.Duration(1+u.random.IntN(10)) * time.Second
		if d := u.healthy(); d != nil {
			switch u.random.IntN(8) {
			case 0, 1:
				u.kill(d, back)
			case 2:
				u.kill(d, back)
				if d := u.healthy(); d != nil {
					u.kill(d, back/2)
				}
			case 3:
				u.hang(d, back)
			case 4:
				if len(u.cut) == 0 {
					u.say("%s is cut off", d.name)
					d.network.cut()
					u.cut = []*network{d.network}
					u.after(back, "the network heals", u.heal)
				}
			case 5, 6:
				var one, other []*network
				for _, d := range u.daemons {
					if u.random.IntN(2) == 0 {
						one = append(one, d.network)
					} else {
						other = append(other, d.network)
					}
				}
				if len(u.cut) == 0 {
					u.say("the network falls into %v and %v", u.names(one), u.names(other))
				}
				u.split(one, other, back)
			case 7: // a quiet time
			}
		}
		time.Sleep(time.Duration(1000+u.random.IntN(8000)) * time.Millisecond)
		u.due(false)
		if time.Now().After(members) && u.moved() {
			if u.change(step) {
				step++
				members = time.Now().Add(10 * time.Second)
			}
		}
	}
	u.due(true)
	u.say("all is healed")
}

// moved reports whether no shard moves, and no member is a host that is not to be one.
func (u *use) moved() bool {
	d := u.healthy()
	if d == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), 3*time.Second)
	defer cancel()
	layout, err := client.Ask(ctx, d.api, api.GetLayout, api.OfNS(namespace))
	if err != nil || len(layout.Moves) > 0 {
		return false
	}
	hosts := map[string]bool{}
	for _, of := range layout.Hosts {
		for _, id := range of {
			hosts[id.String()] = true
		}
	}
	for d, away := range u.away {
		if hosts[d.id] == away {
			return false
		}
	}
	return true
}

// Changes of the members.
const (
	joins = iota
	loses // the right to write
	regains
	lapses
	removal
	changes
)

// change changes the members, each time in another way.
func (u *use) change(step int) bool {
	by, d := u.daemons[0], u.healthy() // the founder may remove any other one
	if d == nil || by == d || !u.up[by] || u.hung[by] {
		return false
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), 20*time.Second)
	defer cancel()
	var err error
	switch step % changes {
	case joins:
		if len(u.machines) == 0 || len(u.cut) > 0 {
			return false
		}
		u.say("one joins")
		var ticket api.Ticket
		if ticket, err = client.Send(ctx, by.api, api.MakeTicket, api.Invitation{NS: namespace, Role: "admin"}); err != nil {
			break
		}
		d = newDaemonIn(u.t, u.machines[0], fmt.Sprint("node ", 20+step), u.t.TempDir(), *shardsInterval)
		u.machines = u.machines[1:]
		if _, err = client.Send(ctx, d.api, api.Join, ticket); err == nil {
			u.mu.Lock()
			u.daemons = append(u.daemons, d)
			u.away[d] = false
			u.up[d] = true
			u.mu.Unlock()
		} else {
			d.kill()
		}
	case loses:
		u.say("%s takes the right to write from %s", by.name, d.name)
		if _, err = client.Ask(ctx, by.api, api.SetMember, api.SetMemberParams{NSParams: api.OfNS(namespace), ID: d.id, Body: api.NewRole{Role: "read"}}); err == nil {
			u.away[d] = true
			u.set(d, false)
		}
	case regains:
		for _, other := range u.daemons {
			if u.away[other] {
				u.say("%s gives it back to %s", by.name, other.name)
				if _, err = client.Ask(ctx, by.api, api.SetMember, api.SetMemberParams{NSParams: api.OfNS(namespace), ID: other.id, Body: api.NewRole{Role: "admin"}}); err == nil {
					u.away[other] = false
					u.set(other, true)
				}
			}
		}
	case lapses:
		u.say("%s lapses %s", by.name, d.name)
		u.kill(d, 0)
		if _, err = client.Ask(ctx, by.api, api.Lapse, api.LapseParams{NSParams: api.OfNS(namespace), ID: d.id}); err == nil {
			u.away[d] = true
		}
		u.after(time.Duration(5+u.random.IntN(60))*time.Second, d.name+", which had lapsed, starts", func() { delete(u.away, d); d.restart(); u.set(d, true) })
	case removal:
		u.say("%s removes %s", by.name, d.name)
		u.lookAt(d)
		if _, err = client.Ask(ctx, by.api, api.RemoveMember, api.RemoveParams{NSParams: api.OfNS(namespace), ID: d.id}); err == nil {
			u.set(d, false)
			u.away[d] = true
			u.lookAt(d)
			d.kill()
			u.mu.Lock()
			u.daemons = slices.DeleteFunc(u.daemons, func(o *daemon) bool { return o == d })
			u.mu.Unlock()
		}
	}
	if err != nil {
		u.say("that failed: %v", err)
		return false
	}
	return true
}

// settle waits until all moves have ended, which is to be within a minute of the last fault.
func (u *use) settle() {
	began := time.Now()
	for told := ""; ; time.Sleep(200 * time.Millisecond) {
		waits := ""
		for _, d := range u.daemons {
			layout, err := client.Ask(u.t.Context(), d.api, api.GetLayout, api.OfNS(namespace))
			if err != nil {
				waits = d.name + ": " + err.Error()
			}
			for _, m := range layout.Moves {
				unready := []string{}
				for _, d := range u.daemons {
					if slices.ContainsFunc(m.Unready, func(id status.ID) bool { return id.String() == d.id }) {
						unready = append(unready, d.name)
					}
				}
				waits += fmt.Sprintf("%s by epoch %d: shard %d moves, not ready are %v; ", d.name, layout.Epoch, m.Shard, unready)
			}
			if waits != "" {
				break
			}
		}
		if waits == "" && !u.moved() {
			waits = "the layout follows the members"
		}
		if waits == "" {
			waits = u.unsettled()
		}
		if waits == "" {
			break
		}
		if waits != told {
			u.say("waits: %s", waits)
			told = waits
		}
		if time.Since(began) > movePatience {
			u.t.Errorf("after %s: %s", movePatience, waits)
			return
		}
	}
	u.say("all moves have ended after %s", time.Since(began).Round(10*time.Millisecond))
	if *useTime > 0 && time.Since(began) > time.Minute {
		u.t.Errorf("moves ended %s after the last fault", time.Since(began))
	}
}

// equal waits until all exports are equal, and reads each key at each daemon.
func (u *use) equal() {
	began := time.Now()
	var first string
	until(u.t, "all exports are equal", func() bool {
		first = u.daemons[0].export()
		return !slices.ContainsFunc(u.daemons[1:], func(d *daemon) bool { return d.export() != first })
	})
	u.say("all exports are equal after %s: %d records", time.Since(began).Round(10*time.Millisecond), bytes.Count([]byte(first), []byte("\n")))
	var reading sync.WaitGroup
	for _, d := range u.daemons {
		reading.Go(func() {
			for i := range *useKeys {
				o := u.get(d, fmt.Sprint("key ", i), "quorum", "")
				if o.Exit != 0 && o.Exit != 4 {
					u.t.Errorf("in the end: %+v", *o)
				}
				if o.Exit == 0 && !strings.Contains(first, o.Version) || o.Exit == 4 && strings.Contains(first, fmt.Sprintf(`"key":%q,"value"`, o.Key)) {
					u.t.Errorf("the export has another version: %+v", *o)
				}
			}
		})
	}
	reading.Wait()
}

// phases measure requests at quorum at the other daemons, for keys of one that is down, hangs or is cut off.
func (u *use) phases() {
	layout, err := client.Ask(u.t.Context(), u.daemons[0].api, api.GetLayout, api.OfNS(namespace))
	if err != nil {
		u.t.Fatal(err)
	}
	shards := map[string]int{}
	for _, hosts := range layout.Hosts {
		for _, id := range hosts {
			shards[id.String()]++
		}
	}
	d := slices.MaxFunc(u.daemons[1:], func(a, b *daemon) int { return shards[a.id] - shards[b.id] })
	u.set(d, false)
	var keys []string
	for i := range *useKeys {
		key := fmt.Sprint("key ", i)
		l, err := u.daemons[0].api.Locate(u.t.Context(), namespace, []byte(key), api.ReadParams{})
		if err != nil {
			u.t.Fatal(err)
		}
		if slices.ContainsFunc(layout.Hosts[l.Shard], func(id status.ID) bool { return id.String() == d.id }) {
			keys = append(keys, key)
		}
	}
	request := func(at *daemon, random *rand.Rand) {
		key := keys[random.IntN(len(keys))]
		if random.IntN(2) == 0 {
			u.get(at, key, "quorum", "")
		} else {
			u.put(at, key, "quorum", "")
		}
	}
	for _, fault := range []struct {
		what     string
		do, undo func()
	}{
		{"is down", d.kill, d.restart},
		{"hangs", func() { _ = d.process.Process.Signal(syscall.SIGSTOP) }, func() { _ = d.process.Process.Signal(syscall.SIGCONT) }},
		{"is cut off", d.network.cut, d.network.heal},
	} {
		u.settle()
		calm := u.phase("calm", request, nil)
		fault.do()
		u.phase(d.name+" "+fault.what, request, calm)
		fault.undo()
	}
	u.settle()
}

type times map[string][]time.Duration

func (u *use) phase(what string, request func(*daemon, *rand.Rand), calm times) times {
	from := u.now()
	stop := u.run(request)
	time.Sleep(*usePhase)
	to := u.now()
	stop()
	out, failed := times{}, map[string]int{}
	for _, o := range u.h.all {
		if o.Start < from || o.Start >= to {
			continue
		}
		out[o.Kind] = append(out[o.Kind], o.End-o.Start)
		if o.Exit != 0 && o.Exit != 4 {
			failed[o.Kind]++
		}
	}
	for _, kind := range []string{"get", "put"} {
		slices.Sort(out[kind])
		n := len(out[kind])
		m, p, top := out[kind][n/2], out[kind][n*99/100], out[kind][n-1]
		text := fmt.Sprintf("%s: %d %ss at quorum, %d failed, median %.2f ms, p99 %.1f ms, longest %.0f ms", what, n, kind, failed[kind], ms(m), ms(p), ms(top))
		if c := calm[kind]; c != nil {
			text += fmt.Sprintf("; %.2f and %.2f times the calm ones", ms(m)/ms(c[len(c)/2]), ms(p)/ms(c[len(c)*99/100]))
		}
		u.say("%s", text)
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
