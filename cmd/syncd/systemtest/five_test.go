//go:build linux

package systemtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

// interval is the mean pause between background syncs of the five: two of them are enough
// for a busy machine.
const interval = 15 * time.Second

// Five daemons become a cluster by invitations alone, whichever admin invites: each
// writes from the moment when it has joined, while others still join. Once the
// writes are over, all exports are equal within two intervals, byte for byte, and all list
// the five.
func TestFiveByInvitation(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for _, shape := range []struct {
		name    string
		inviter func(joined int) int
	}{
		{"star", func(int) int { return 0 }},
		{"chain", func(joined int) int { return joined - 1 }},
		{"random", func(joined int) int { return random.IntN(joined) }},
	} {
		t.Run(shape.name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			var five []*daemon
			for i := range 5 {
				five = append(five, newDaemonEvery(t, fmt.Sprint("node ", i), t.TempDir(), interval))
			}
			if _, err := five[0].api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace}); err != nil {
				t.Fatal(err)
			}
			var writers sync.WaitGroup
			stop := make(chan struct{})
			defer func() { // also where the test ends early
				select {
				case <-stop:
				default:
					close(stop)
				}
				writers.Wait()
			}()
			write := func(d *daemon) {
				writers.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := d.api.Put(t.Context(), namespace, fmt.Appendf(nil, "by %s/%d", d.name, n%50), strings.NewReader(valueOf(n)), client.PutOptions{}, client.Condition{}); err != nil {
							t.Errorf("%s: %v", d.name, err)
							return
						}
					}
				})
			}
			write(five[0])
			for i, d := range five[1:] {
				by := five[shape.inviter(i+1)]
				ticket, err := by.api.Invite(t.Context(), api.Invitation{NS: namespace, Role: "admin"})
				if err != nil {
					t.Fatal(err)
				}
				if joined, err := d.api.Join(t.Context(), ticket); err != nil {
					t.Fatal(err)
				} else if joined.Problem != "" {
					t.Logf("%s, invited by %s: the first sync: %s", d.name, by.name, joined.Problem)
				}
				write(d)
			}
			close(stop)
			writers.Wait()
			began := time.Now()
			for equal := false; !equal; {
				equal = true
				for _, d := range five {
					status, err := d.api.NamespaceStatus(t.Context(), namespace)
					if err != nil {
						t.Fatal(err)
					}
					equal = equal && len(status.MemberList) == len(five) && d.export() == five[0].export()
				}
				if waited := time.Since(began); !equal && waited > patience {
					t.Fatalf("the exports, or the lists of members, differ after %s; the log of %s ends with:\n%s", waited, five[0].name, five[0].log.tail())
				}
			}
			took := time.Since(began)
			t.Logf("equal after %.1f intervals", float64(took)/float64(interval))
			if took > 2*interval {
				t.Errorf("they were equal after %s, which is more than two intervals of %s", took, interval)
			}
		})
	}
}
