package testnettest

import (
	"context"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// faultyStore applies a test's fault to what is written under the key victim.
type faultyStore struct {
	dbadapter.Store
	apply func(ctx context.Context, ns *faultyNamespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
}

func (s *faultyStore) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, h, observe)
	return &faultyNamespace{ns, s, h}, err
}

type faultyNamespace struct {
	dbadapter.Namespace
	store  *faultyStore
	hasher dbadapter.Hasher
}

func (n *faultyNamespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if n.store.apply != nil && string(writes[0].Record.Key) == "victim" {
		return n.store.apply(ctx, n, writes)
	}
	return n.Namespace.Apply(ctx, writes)
}

// altered is a write of another record under the same condition.
func (n *faultyNamespace) altered(w dbadapter.Write, alter func(*dbadapter.Record)) dbadapter.Write {
	r := w.Record.Record
	alter(&r)
	w.Record, _ = dbadapter.Hash(n.hasher, r) // it stays valid
	return w
}

// Through the recorder the checks find faults of a node's store that cause no
// error. Each is planted in node 0.
func TestFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		fault func(ctx context.Context, ns *faultyNamespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
	}{
		{"a write is acknowledged and lost", check.Durable, func(_ context.Context, _ *faultyNamespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			return []dbadapter.Outcome{{Result: dbadapter.Applied, Held: writes[0].Record.Version}}, nil
		}},
		{"another value is stored", check.Identity, func(ctx context.Context, ns *faultyNamespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			writes = slices.Clone(writes)
			writes[0] = ns.altered(writes[0], func(r *dbadapter.Record) { r.Value = []byte("altered") })
			return ns.Namespace.Apply(ctx, writes)
		}},
		{"a record without a request is stored too", check.Intended, func(ctx context.Context, ns *faultyNamespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			extra := ns.altered(writes[0], func(r *dbadapter.Record) {
				r.Key = []byte("extra")
				r.Version.Clock++
			})
			if _, err := ns.Namespace.Apply(ctx, []dbadapter.Write{extra}); err != nil {
				return nil, err
			}
			return ns.Namespace.Apply(ctx, writes)
		}},
		{"no fault", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := New(t, 2, Memory(), Policy(peer.Policy{Unsigned: true}), func(cfg *config) {
				cfg.faulty = func(i int, s dbadapter.Store) dbadapter.Store {
					if i > 0 {
						return s
					}
					return &faultyStore{s, c.fault}
				}
			})
			for _, key := range []string{"a", "victim", "z"} {
				if _, err := n.Namespace(0).Put(t.Context(), []byte(key), []byte("v")); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			found, err := n.converge(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var rules []check.Rule
			for _, v := range found.violations {
				rules = append(rules, v.Rule)
			}
			if c.rule == "" && len(rules) > 0 || c.rule != "" && !slices.Contains(rules, c.rule) {
				t.Errorf("want %q, have %v", c.rule, found.violations)
			}
		})
	}
}

// Close finds goroutines that an application has left running.
func TestLeftovers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is sure")
	}
	n := New(t, 1, Memory())
	stop, started := make(chan struct{}), make(chan struct{})
	go func() { close(started); <-stop }()
	<-started
	pprof.SetGoroutineLabels(context.Background()) // as at the end of the test
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := n.close(ctx); err == nil {
		t.Error("a goroutine that runs on was not found")
	} else {
		t.Log(err)
	}
	close(stop)
}
