package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// While a put of a node is under way, and no host holds it yet, the node's own write on a later record that has not seen the put is
// not sure: what another node writes over it would count the put as seen, and hosts would say then that they had it.
func TestConditionBesideAPutUnderWay(t *testing.T) {
	for name, cluster := range map[string]func() (c *routedCluster, key string, asker *Namespace, hosts []int, first dbadapter.Version){
		"hash": func() (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c, first, asker, hosts := newBothCurrent(t)
			return c, "key", asker, hosts, first.Version
		},
		"writer": func() (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c := newWriterCluster(t, 4)
			key, asker, hosts, first := c.onTwo()
			return c.routedCluster, key, asker, hosts, first.Version
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, key, asker, hosts, first := cluster()
			var other *Namespace
			for i, ns := range c.spaces {
				if ns != asker && i != hosts[0] && i != hosts[1] {
					other = ns
				}
			}
			other.node.routing.close()
			asked, release := c.delays(hosts, asker)
			type end struct {
				version dbadapter.Version
				err     error
			}
			done := make(chan end, 1)
			go func() {
				v, err := asker.Put(t.Context(), []byte(key), []byte("under way"), Acks(AckAll))
				done <- end{v, err}
			}()
			for range hosts {
				<-asked
			}
			c.now.Add(int64(10 * time.Millisecond))
			second, err := other.PutIf(t.Context(), []byte(key), []byte("second"), first, Acks(AckAll))
			c.must(err)
			c.now.Add(int64(10 * time.Millisecond))
			if v, err := asker.PutIf(t.Context(), []byte(key), []byte("third"), second, Acks(AckAll)); !errors.Is(err, ErrUnsure) {
				t.Errorf("beside its put it writes %v over %v: %v", v, second, err)
			}
			release()
			put := <-done
			c.must(put.err)
			if _, err := asker.PutIf(t.Context(), []byte(key), []byte("third"), put.version, Acks(AckAll)); err != nil {
				t.Errorf("behind its put: %v", err)
			}
		})
	}
}
