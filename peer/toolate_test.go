package peer

import (
	"sync/atomic"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// promises has a host decline what is not later than the first record that a node offers, as if it had promised just
// then to hold all up to that. declined is how often it has.
func (c *routedCluster) promises(host int, asker *Namespace) (declined *atomic.Int64) {
	return c.promisesOf(host, asker, func(placement.Shard) bool { return true })
}

// promisesOf is promises of some sets.
func (c *routedCluster) promisesOf(host int, asker *Namespace, of func(placement.Shard) bool) (declined *atomic.Int64) {
	n := c.nodes[host]
	declined = &atomic.Int64{}
	var promised dbadapter.Timestamp // one question is asked at a time
	c.lies(n, asker, func(ask *wire.Ask) wire.Answering {
		if q, ok := ask.Question.(*wire.AskHold); ok && !q.Look && of(placement.Shard(q.Shard)) {
			if promised == 0 {
				promised = q.Records[0].Version.Clock
			}
			if q.Records[0].Version.Clock <= promised {
				declined.Add(1)
				return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
			}
		}
		return n.honest(asker, ask)
	})
	asker.node.routing.close()
	return declined
}

// What comes too late for a promise of one host, and is taken by the other one, is made anew, and so both hold it.
func TestWrittenTooLate(t *testing.T) {
	t.Parallel()
	for what, write := range map[string]func(*Namespace, string) error{
		"put": func(asker *Namespace, key string) error {
			_, err := asker.Put(t.Context(), []byte(key), []byte("value"), Acks(AckAll))
			return err
		},
		"import": func(asker *Namespace, key string) error {
			got, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("value")}}), Acks(AckAll))
			if err == nil && got != (ImportResult{Items: 1, Written: 1}) {
				t.Errorf("%+v", got)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			c, _, asker, hosts := newBothCurrent(t)
			key := c.beside(asker, "key")
			declined := c.promises(hosts[1], asker)
			c.must(write(asker, key))
			for _, host := range hosts {
				if r := c.held(host, key); r == nil || string(r.Value) != "value" {
					t.Errorf("host %d holds %+v", host, r)
				}
			}
			if declined.Load() != 1 || c.conflicts() > 0 {
				t.Errorf("declined %d times, %d conflicts", declined.Load(), c.conflicts())
			}
		})
	}
}

// So by placement writer, where the entry is made anew with the record, and on a condition, where the first host declines and has
// the other one not be asked.
func TestOtherWritesTooLate(t *testing.T) {
	t.Parallel()
	w := newWriterCluster(t, 4)
	key, asker, hosts, _ := w.onTwo()
	w.promises(hosts[1], asker)
	if _, err := asker.Put(t.Context(), []byte(key), []byte("value"), Acks(AckAll)); err != nil {
		t.Error(err)
	}
	for _, of := range []bool{true, false} { // the directory, or the shard of the record
		w := newWriterCluster(t, 4)
		key, asker, hosts, _ := w.onTwo()
		declined := w.promisesOf(hosts[1], asker, func(set placement.Shard) bool { return asker.core.RemoteIn([]byte(key), set).Directory() == of })
		got, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("value")}}), Acks(AckAll))
		if want := (ImportResult{Items: 1, Written: 1}); err != nil || got != want || declined.Load() != 1 {
			t.Errorf("%+v, declined %d times: %v", got, declined.Load(), err)
		}
	}
	c, first, asker, _ := newBothCurrent(t)
	remote, err := asker.core.Remote([]byte("key"))
	c.must(err)
	declined := c.promises(c.firstOf(remote), asker)
	if _, err := asker.PutIf(t.Context(), []byte("key"), []byte("value"), first.Version); err != nil || declined.Load() != 1 {
		t.Errorf("declined %d times: %v", declined.Load(), err)
	}
}

// honest is what a node answers to a routed question of another one; nil: it refuses it.
func (n *Node) honest(asker *Namespace, ask *wire.Ask) wire.Answering {
	reply, err := n.answerRouted(asker.node.ID(), ask)
	if err != nil {
		return nil
	}
	return honestly{reply.Answer, reply.Greeting}
}

// honestly is an honest answer with its greeting.
type honestly struct {
	wire.Answering
	greeting wire.Greeting
}
