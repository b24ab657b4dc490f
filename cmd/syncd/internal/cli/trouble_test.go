package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/httpapi"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// ailing is a store that does not work while it has an error.
type ailing struct {
	dbadapter.Store
	mu  sync.Mutex
	err error
}

func (s *ailing) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *ailing) now() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *ailing) Able(context.Context) error {
	if err := s.now(); !errors.Is(err, dbadapter.ErrCorrupt) {
		return err
	}
	return nil
}

func (s *ailing) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, h, observe)
	return ailingNamespace{ns, s}, err
}

type ailingNamespace struct {
	dbadapter.Namespace
	of *ailing
}

func (n ailingNamespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if err := n.of.now(); err != nil {
		return nil, err
	}
	return n.Namespace.Apply(ctx, writes)
}

// troubled is a node behind the API, with the places where it says that it cannot work.
type troubled struct {
	t        *testing.T
	node     *peer.Node
	ns       *peer.Namespace
	url      string
	client   *client.Client
	log      bytes.Buffer
	mu       sync.Mutex // guards log
	registry *prometheus.Registry
}

func (n *troubled) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(b)
}

func newTroubled(t *testing.T, store dbadapter.Store) *troubled {
	n := &troubled{t: t, registry: prometheus.NewRegistry()}
	var err error
	n.node, err = peer.Open(t.Context(), peer.Config{Store: store, ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, Registerer: n.registry, Logger: slog.New(slog.NewTextHandler(n, nil))})
	n.must(err)
	handler, err := httpapi.Handler(httpapi.Config{Node: n.node, Metrics: n.registry})
	n.must(err)
	server := httptest.NewServer(handler)
	addr, err := endpoint.ParseAddr(server.URL)
	n.must(err)
	n.url, n.client = server.URL, client.New(addr, "")
	t.Cleanup(func() {
		n.client.Close()
		server.Close()
		n.must(n.node.Close(context.WithoutCancel(t.Context())))
	})
	return n
}

func (n *troubled) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// show runs a command of status.
func (n *troubled) show(c statusCmd) string {
	var out bytes.Buffer
	n.must(c.Run(n.t.Context(), &app{globals: &globals{}, stdout: &output{Writer: &out}, stderr: &out, daemon: n.client}, n.client))
	return out.String()
}

// logged counts lines of the log.
func (n *troubled) logged(part string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.log.String(), part)
}

// metric is the gauge of a kind of trouble.
func (n *troubled) metric(kind status.TroubleKind) (value float64) {
	families, err := n.registry.Gather()
	n.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "syncd_troubles" && l.GetValue() == string(kind) {
					value += m.GetGauge().GetValue()
				}
			}
		}
	}
	return value
}

// ready is the status of /readyz, and its body.
func (n *troubled) ready() (int, string) {
	resp, err := http.Get(n.url + "/readyz")
	n.must(err)
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	n.must(err)
	return resp.StatusCode, b.String()
}

// TestTroubles: each state in which the daemon cannot do its work shows in each place, once
// in the log, and ends there. The other member, which is in no such state, is ready all along.
func TestTroubles(t *testing.T) {
	for kind, test := range map[status.TroubleKind]struct {
		err        error
		text       string
		begin, end func(n, other *troubled) error // beside the error of the store
	}{
		status.Away:       {err: fmt.Errorf("%w: connection refused", dbadapter.ErrAway), text: "connection refused"},
		status.DiskFull:   {err: fmt.Errorf("%w: the disk is nearly full: 3 MiB are free", dbadapter.ErrLimit), text: "3 MiB are free"},
		status.NoFiles:    {err: fmt.Errorf("open 7.sst: %w", syscall.EMFILE), text: "too many open files"},
		status.StoreFails: {err: fmt.Errorf("sync 7.log: %w", syscall.EIO), text: "input/output error"},
		status.Damaged: {
			err: fmt.Errorf("%w: 7.sst", dbadapter.ErrCorrupt), text: "7.sst",
			end: func(n, _ *troubled) error {
				_, err := n.ns.Verify(n.t.Context())
				return err
			},
		},
		status.Recovering: {
			text: "more",
			begin: func(n, other *troubled) error {
				ns, err := other.node.CreateNamespace(n.t.Context(), "more", peer.Policy{})
				if err != nil {
					return err
				}
				ticket, err := ns.Invite(n.t.Context(), peer.InviteOptions{})
				if err != nil {
					return err
				}
				if err := ns.Pause(n.t.Context()); err != nil {
					return err
				}
				_, err = n.node.Join(n.t.Context(), ticket)
				return err
			},
			end: func(n, other *troubled) error {
				theirs, err := other.node.Namespace("more")
				if err == nil {
					err = theirs.Resume(n.t.Context())
				}
				ns, _ := n.node.Namespace("more")
				if err == nil {
					_, err = ns.Sync(n.t.Context(), other.node.ID(), peer.SyncOptions{})
				}
				return err
			},
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			store := &ailing{Store: memdb.New(memdb.Options{})}
			t.Cleanup(func() { store.Store.Close() })
			n, other := newTroubled(t, store), newTroubled(t, nil)
			ns, err := other.node.CreateNamespace(t.Context(), "notes", peer.Policy{})
			other.must(err)
			ticket, err := ns.Invite(t.Context(), peer.InviteOptions{})
			other.must(err)
			n.ns, _, err = n.node.JoinSync(t.Context(), ticket, peer.SyncOptions{})
			n.must(err)
			text := strings.ReplaceAll(string(kind), "_", " ")
			places := map[string]func() (shows bool){
				"readyz": func() bool {
					status, body := n.ready()
					if status != http.StatusOK && status != http.StatusServiceUnavailable {
						t.Fatalf("readyz: %d %s", status, body)
					}
					return status != http.StatusOK && strings.Contains(body, string(kind)+": ") && strings.Contains(body, test.text)
				},
				"status": func() bool {
					out := n.show(statusCmd{})
					return strings.Contains(out, "cannot work") && strings.Contains(out, text+" since ") && strings.Contains(out, test.text)
				},
				"metric": func() bool { return n.metric(kind) == 1 },
				"status --cluster here": func() bool {
					return strings.Contains(n.show(statusCmd{Cluster: true, NS: "notes", Within: time.Minute}), "this node, "+text)
				},
				"status --cluster there": func() bool {
					return strings.Contains(other.show(statusCmd{Cluster: true, NS: "notes", Within: time.Minute}), ", "+text)
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			all := func(want bool) {
				t.Helper()
				for name, shows := range places {
					for shows() != want {
						select {
						case <-ctx.Done():
							t.Fatalf("%s: it does not become %v", name, want)
						case <-time.After(10 * time.Millisecond):
						}
					}
				}
				if status, body := other.ready(); status != http.StatusOK {
					t.Errorf("the other member: %s", body)
				}
			}

			begun, over := n.logged("cannot work: "), n.logged("works again")
			for begun != over || len(api.StatusOf(n.node).Troubles) > 0 { // until the records of the join are there
				select {
				case <-ctx.Done():
					t.Fatalf("the join is not over: %s", &n.log)
				case <-time.After(10 * time.Millisecond):
				}
				begun, over = n.logged("cannot work: "), n.logged("works again")
			}
			store.set(test.err)
			if test.begin != nil {
				n.must(test.begin(n, other))
			}
			if _, err := n.ns.Put(t.Context(), []byte("key"), []byte("value")); (err != nil) != (test.err != nil) {
				t.Errorf("a write: %v", err)
			}
			all(true)
			if b, o := n.logged("cannot work: ")-begun, n.logged("works again")-over; b != 1 || o != 0 {
				t.Errorf("%d and %d lines at the begin: %s", b, o, &n.log)
			}
			store.set(nil)
			if test.end != nil {
				n.must(test.end(n, other))
			}
			all(false)
			if b, o := n.logged("cannot work: ")-begun, n.logged("works again")-over; b != 1 || o != 1 {
				t.Errorf("%d and %d lines at the end: %s", b, o, &n.log)
			}
			if got := api.StatusOf(n.node).Troubles; len(got) != 0 {
				t.Errorf("at the end: %v", got)
			}
		})
	}
}
