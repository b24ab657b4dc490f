package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// side is a set of records in memory.
type side struct {
	name  string
	keys  reconcile.Keys
	live  *replica.Live
	store dbadapter.Namespace
	pairs []uint64 // a number of each record, in the order in which it was made
}

func newSide(name string) *side {
	s := &side{name: name, keys: reconcile.DeriveKeys(dbadapter.Secret{1}, nil)}
	s.live = replica.New(s.keys)
	store, err := memdb.New(memdb.Options{}).Namespace(context.Background(), s.keys.ID, s.keys.Hasher, s.live.Observe)
	if err != nil {
		panic(err) // memory has no error
	}
	s.store = store
	return s
}

// written is when all records were.
var written = dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}

func (s *side) hash(key, value []byte) (dbadapter.Hashed, error) {
	return dbadapter.Hash(s.keys.Hasher, dbadapter.Record{Key: key, Value: value, Version: written})
}

func (s *side) commit(records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	writes := make([]dbadapter.Write, len(records))
	for i := range records {
		writes[i].Record = records[i]
	}
	outcomes, err := s.store.Apply(context.Background(), writes)
	verdicts := make([]reconcile.Verdict, len(outcomes))
	for i, o := range outcomes {
		verdicts[i].Result = o.Result
	}
	return verdicts, err
}

func (s *side) options(remote *side) reconcile.Options {
	return reconcile.Options{
		Keys: s.keys, Self: []byte(s.name), Remote: []byte(remote.name), Nonce: wire.Nonce{1}, PartsFrom: math.MaxInt64,
		Admit: func(records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) {
			return func() ([]reconcile.Verdict, error) { return s.commit(records) }
		},
	}
}

// pull fetches what the other side has more, by a method, and tells what travelled.
func (s *side) pull(ctx context.Context, from *side, method wire.Method) (reconcile.Report, error) {
	mine, err := s.live.Snapshot(ctx, s.store, nil)
	if err != nil {
		return reconcile.Report{}, err
	}
	defer mine.Close()
	theirs, err := from.live.Snapshot(ctx, from.store, nil)
	if err != nil {
		return reconcile.Report{}, err
	}
	defer theirs.Close()
	o := s.options(from)
	o.Method, o.Direction = method, wire.Pull
	sessions := [2]*reconcile.Session{
		reconcile.Initiate(mine, o),
		reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) { return theirs, nil }, from.options(s)),
	}
	if err := carry(sessions); err != nil {
		return reconcile.Report{}, err
	}
	r := sessions[0].Report()
	if err := errors.Join(sessions[0].Err(), sessions[1].Err()); err != nil {
		return r, fmt.Errorf("sync by %s: %w", method, err)
	}
	return r, nil
}

// carry takes the frames of each session to the other until both are over.
func carry(sessions [2]*reconcile.Session) error {
	var mail [2][][]byte // to each side
	for running := 2; running > 0; {
		running = 2
		for i, s := range sessions {
			switch e := s.Next(); e.Want {
			case reconcile.WantSend:
				mail[1-i] = append(mail[1-i], bytes.Clone(e.Frame))
			case reconcile.WantReceive:
				for other := sessions[1-i]; len(mail[i]) == 0; {
					e := other.Next() // the only other thing that can go on
					if e.Want != reconcile.WantSend {
						return errors.New("both sides wait")
					}
					mail[i] = append(mail[i], bytes.Clone(e.Frame))
				}
				m, n, err := wire.Read(bytes.NewReader(mail[i][0]))
				if err != nil {
					return err
				}
				mail[i] = mail[i][1:]
				s.Deliver(m, n)
			case reconcile.WantNothing:
				running--
			}
		}
	}
	return nil
}
