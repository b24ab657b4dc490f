package reconcile

import (
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// opening answers any Hello with the replica.
func opening(r Replica) Open { return func(*wire.Hello) (Replica, error) { return r, nil } }

// admitting is an admission that sees plain records.
func admitting(admit func([]dbadapter.Record) ([]Verdict, error)) Admission {
	return func(hashed []dbadapter.Hashed) func() ([]Verdict, error) {
		records := make([]dbadapter.Record, len(hashed))
		for n := range hashed {
			records[n] = hashed[n].Record
		}
		return func() ([]Verdict, error) { return admit(records) }
	}
}

// list returns what has been declined.
func (d *Declined) list() []DeclinedRecord { return slices.Collect(maps.Values(d.records)) }

// forget makes all records travel again.
func (d *Declined) forget() { d.records = nil }

// hashed hashes records that may be read in a test.
func hashed(h dbadapter.Hasher, records ...dbadapter.Record) []dbadapter.Hashed {
	var all []dbadapter.Hashed
	for _, r := range records {
		all = append(all, dbadapter.Hashed{Record: r, Index: h.Index(r.Key), Digest: h.Digest(&r)})
	}
	return all
}
