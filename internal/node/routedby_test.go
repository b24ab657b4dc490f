package node

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// routed carries a routed question to another machine and its answer back.
func (m *machine) routed(t *testing.T, other *machine, ask *wire.Ask) wire.Message {
	t.Helper()
	question, err := other.Routed(m.ID, carried(ask).(*wire.Ask))
	if err != nil {
		return carried(reconcile.Refusal(err))
	}
	defer question.Done()
	reply, err := question.Answer(t.Context(), nil)
	if err != nil {
		return carried(reconcile.Refusal(err))
	}
	return carried(reply)
}

// read asks another machine for a key.
func (m *machine) read(t *testing.T, ns *Namespace, other *machine, key string) (route.Answer, error) {
	t.Helper()
	r := ns.Remote([]byte(key))
	ask, err := r.AskRecord(other.ID)
	if err != nil {
		return route.Answer{}, err
	}
	return r.Record(other.ID, ask, m.routed(t, other, ask))
}

// offer asks another machine to hold a record.
func (m *machine) offer(t *testing.T, ns *Namespace, other *machine, record *dbadapter.Record) (route.Outcome, error) {
	t.Helper()
	r := ns.Remote(record.Key)
	ask, err := r.AskHold(other.ID, record, route.Manner{})
	if err != nil {
		return route.Outcome{}, err
	}
	return r.Hold(other.ID, ask, m.routed(t, other, ask))
}

// What travels has room for each shard.
func TestNumbersOfShards(t *testing.T) {
	if wire.MaxShards != placement.MaxShards {
		t.Errorf("%d shards can be named, of %d", wire.MaxShards, placement.MaxShards)
	}
}
