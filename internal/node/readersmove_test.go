package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

var (
	readWorlds = flag.Int("reads.worlds", 40, "how many worlds TestReadsWhileShardsMove makes")
	readSeed   = flag.Int("reads.seed", 1, "the seed of the first one")
)

// step does one thing, drawn at random.
func (z *readers) step() {
	i, j := z.IntN(len(z.all)), z.IntN(len(z.all))
	switch p := z.IntN(1000); {
	case p < 150:
		z.pass(time.Duration(z.IntN(400)) * time.Millisecond)
	case p < 165:
		z.pass(time.Duration(z.IntN(8000)) * time.Millisecond)
	case p < 200:
		if !z.all[i].gone {
			z.logf("tend %d", i)
			z.tend(i)
		}
	case p < 260:
		if i != j && !z.cut(i, j) {
			z.logf("sync %d %d", i, j)
			z.sync(i, j)
		}
	case p < 330: // one shard
		if i != j && !z.cut(i, j) && z.all[i].ns.MayCall(z.all[j].ID) == nil {
			sets := z.all[i].ns.Sets()
			if len(sets) > 0 {
				set := sets[z.IntN(len(sets))]
				z.logf("sync shard %d: %d %d", set.shard, i, j)
				_, _, _ = z.all[i].syncSet(set, z.all[j].machine, Ask{})
			}
		}
	case p < 360: // the list
		if i != j && !z.cut(i, j) && z.all[i].ns.MayCall(z.all[j].ID) == nil {
			z.logf("sync the list: %d %d", i, j)
			_, _, _ = z.all[i].follow(z.all[j].machine, z.all[i].ns.Course(z.all[j].ID))
		}
	case p < 430:
		z.write()
	case p < 560:
		z.heed(i)
		z.poll(i, j)
	case p < 620:
		if !z.all[i].gone {
			z.heed(i)
			for _, id := range z.all[i].ns.Tellers().All {
				z.poll(i, z.index(id))
			}
		}
	case p < 700:
		z.readNowhere()
	case p < 760:
		if len(z.reads) < 6 {
			z.begin()
		}
	case p < 960:
		if len(z.reads) > 0 {
			z.goOn(z.IntN(len(z.reads)))
		}
	case p < 964:
		if !z.all[i].gone {
			z.logf("restart %d", i)
			z.reads = slices.DeleteFunc(z.reads, func(rd *underWay) bool { return rd.reader == i })
			z.all[i].restart(z.t)
			if z.IntN(2) == 0 {
				_ = z.locators[i].Save()
			}
			z.locator(i)
		}
	case p < 968:
		if len(z.all) < 6 {
			z.logf("join %d", len(z.all))
			z.add()
		}
	case p < 972:
		if i >= 2 && !z.all[i].gone && !z.all[0].gone {
			role := []Role{RoleRead, RoleWrite}[z.IntN(2)]
			z.logf("role %d %v", i, role)
			if role == RoleRead {
				if !z.roles {
					return
				}
				if slices.ContainsFunc(z.acks, func(a acknowledged) bool { return a.holder == i && a.at > z.now()-20*time.Second }) {
					return // its clock may be ahead: the writes may be void
				}
				z.demoted[i] = true
			} else if z.demoted[i] {
				return // once is enough
			}
			_ = z.all[0].ns.SetRole(z.t.Context(), z.all[i].ID, role, time.Time{})
		}
	case p < 985:
		if i != j {
			z.logf("cut %d %d", i, j)
			z.apart[[2]int{min(i, j), max(i, j)}] = true
		}
	case p < 992:
		z.logf("heal all")
		clear(z.apart)
	default: // what is due, for all
		z.pass(time.Second)
		for i := range z.all {
			if !z.all[i].gone {
				z.tend(i)
			}
		}
	}
}

// What is sure is no older than what was acknowledged CurrentFor before the read began, by a layout that one of
// those that took part knows.
func TestReadsWhileShardsMove(t *testing.T) {
	sure, unsure, nowhere := 0, 0, 0
	for seed := *readSeed; seed < *readSeed+*readWorlds; seed++ {
		w := &movers{
			Rand: rand.New(rand.NewPCG(uint64(seed), 99)), t: t, apart: map[[2]int]bool{}, acked: map[string]dbadapter.Version{},
			rule: &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1 + seed%2, Locator: true},
		}
		z := &readers{movers: w, seed: seed, told: map[[2]int]uint64{}, demoted: map[int]bool{}, roles: seed%4 < 2}
		for range 3 + seed%2 {
			z.add()
		}
		w.settle()
		for i := range 6 {
			z.keys = append(z.keys, fmt.Sprint("key", i))
		}
		for range 2500 {
			z.step()
		}
		sure, unsure, nowhere = sure+z.sure, unsure+z.unsure, nowhere+z.nowhere
		for _, m := range w.all {
			_ = m.ns.Close()
		}
	}
	t.Logf("%d reads are sure, %d are not, %d keys are nowhere", sure, unsure, nowhere)
	if min(sure, unsure, nowhere) == 0 {
		t.Error("a case did not come")
	}
}
