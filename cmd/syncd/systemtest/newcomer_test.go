//go:build linux

package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

// What a daemon writes at once after it has joined all others hold soon, by pushes alone,
// be it invited by the last newcomer, and whether or not others write all the time: that
// puts off the digests of quiet sets.
func TestNewcomersWritesAreHeard(t *testing.T) {
	for _, steady := range []bool{false, true} {
		t.Run(fmt.Sprintf("steady %v", steady), func(t *testing.T) {
			in := newNetwork(t)
			random := rand.New(rand.NewPCG(*liveSeed, 4))
			var running sync.WaitGroup
			defer running.Wait()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var daemons []*daemon
			var all []time.Duration
			for i := range 5 {
				d := newDaemonIn(t, in, fmt.Sprint("node ", i), t.TempDir(), time.Hour)
				put := func(key string) error {
					_, err := d.api.Put(ctx, namespace, []byte(key), strings.NewReader("v"), client.PutOptions{}, client.Condition{})
					return err
				}
				if daemons = append(daemons, d); i == 0 {
					if _, err := d.api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace}); err != nil {
						t.Fatal(err)
					}
					running.Go(func() {
						for n := 0; steady && ctx.Err() == nil; n++ {
							if err := put(fmt.Sprint("steady ", n%10)); err != nil && ctx.Err() == nil {
								t.Error(err)
							}
							time.Sleep(50 * time.Millisecond) // the writer's pace
						}
					})
					continue
				}
				by := i - 1
				if random.IntN(3) == 0 {
					by = random.IntN(i)
				}
				ticket, err := daemons[by].api.Invite(t.Context(), api.Invitation{NS: namespace, Role: "admin"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.api.Join(t.Context(), ticket); err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint("of node ", i)
				if err := put(key); err != nil {
					t.Fatal(err)
				}
				written := time.Now()
				for _, other := range daemons[:i] {
					c := &cluster{t: t}
					c.eventually(fmt.Sprintf("%s holds what %s wrote when it had joined", other.name, d.name), func() bool {
						_, err := other.api.Get(t.Context(), namespace, []byte(key), client.GetOptions{})
						return err == nil
					})
				}
				all = append(all, time.Since(written))
			}
			t.Logf("from the first put of a newcomer until all others hold it: %v", all)
		})
	}
}
