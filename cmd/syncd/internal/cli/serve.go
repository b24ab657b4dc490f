package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/gologshim"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap/exp/zapslog"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/httpapi"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/peer"
)

type serveCmd struct {
	Listen       []string      `help:"Multiaddr to listen on for peers; may be given again." default:"/ip4/0.0.0.0/tcp/4747,/ip4/0.0.0.0/udp/4747/quic-v1" placeholder:"MULTIADDR" setting:""`
	Announce     []string      `help:"Multiaddr to tell other nodes instead of those listened on, such as that of a router which forwards a port; may be given again." placeholder:"MULTIADDR" setting:""`
	Relay        []string      `help:"Multiaddr, with /p2p/ and the id, of a relay through which others reach this node; may be given again." placeholder:"MULTIADDR" setting:""`
	RelayService bool          `help:"Be a relay between members of the same namespace." setting:""`
	MDNS         bool          `name:"mdns" help:"Announce this node on the local networks, and dial members found there." setting:""`
	SyncInterval time.Duration `help:"Mean pause between background syncs with each member; 0 means no background syncs." default:"1m" setting:""`
	Push         bool          `help:"Push what is written here to the other members at once, and take what they push; without background syncs nothing is pushed." default:"true" negatable:"" setting:""`
	NoHost       bool          `help:"Be no host of shards, in any namespace, though this node may write." setting:""`
	Memory       byteSize      `help:"About how much memory the daemon may take, at least 256MiB; larger syncs wait, or go in smaller pieces." default:"1GiB" placeholder:"SIZE" setting:""`
	DiskReserve  byteSize      `help:"How much of the disk writes leave free, beside what the store needs for its own work; deletions leave half of it." default:"64MiB" placeholder:"SIZE" setting:""`
	Repair       bool          `help:"Give the node a new store at the start where the old one is damaged; the damaged files are kept, and syncs bring back what members hold." setting:""`
	WatchLog     int           `help:"How many changes of each namespace are kept, at least, for watches that go on from a cursor." default:"${watch_log}" placeholder:"N" setting:""`
	limitFlags
	storeFlags
}

func (serveCmd) Help() string {
	return `Makes the data directory and the identity if they are not there, and prints where it can be reached once it takes work. Ends cleanly on SIGTERM, SIGINT or SIGHUP; requests that run have 2 seconds to end. What was acknowledged is durable at any time.

Peers connect over TCP and QUIC. A node behind a router that forwards no port is reached through a relay (--relay), of which it announces an address; it then also tries to connect directly. --relay-service makes a node that can be reached a relay for its members: for an hour and 1 GiB in each direction at a time. --mdns tells all machines on the local networks that this node is there.

--memory is a target: half of it is for syncs, a quarter for the store, and Go's runtime collects garbage more often as the daemon comes near it. The environment variable GOMEMLIMIT, where it is set, takes the place of the latter. Records are on the disk, and take none.

--limit-send and the like bound the bytes a second that syncs and pushes move, each direction by itself; fewer syncs then run at once, one of each side for each 64KiB. 0 means no bound.

The API is a unix socket in the data directory, for its owner only. With --api http://127.0.0.1:PORT it is served over TCP to holders of the token in --token-file, which is made at the first start. With --api unix: --api http://127.0.0.1:PORT it is served on both; /healthz, /readyz, /metrics and /openapi.json need no token.

With --repair the daemon begins as syncd verify --repair does, where its store does not open for damage, or damage was met before. The damaged files are kept in the folder damaged of the data directory until you remove them.

With --store postgres the records are in a schema of a database (PostgreSQL, or what speaks its protocol), which one node at a time may use; the identity, the namespaces' secrets and the address book stay in the data directory. The connection string may hold a password and therefore has a file of its own.

Examples:
    syncd serve
    syncd serve --listen /ip4/127.0.0.1/tcp/0 --data-dir /tmp/a
    syncd serve --announce /dns4/syncd.example.org/tcp/4747 --announce /dns4/syncd.example.org/udp/4747/quic-v1
    syncd serve --relay /dns4/relay.example.org/tcp/4747/p2p/12D3KooW…
    syncd serve --relay-service
    syncd serve --mdns
    syncd serve --memory 512MiB
    syncd serve --repair
    syncd serve --limit-send 2MiB --limit-peer-receive 512KiB
    syncd serve --api http://127.0.0.1:4748 --log-format json
    syncd serve --api unix: --api http://127.0.0.1:4748
    syncd serve --store postgres --postgres-file /etc/syncd/postgres`
}

// Bounds of a shutdown. The node needs some milliseconds, and longer on a busy machine.
// Killing it loses nothing that was acknowledged.
const (
	drainTime = 2 * time.Second        // for requests to end by themselves
	cutTime   = 500 * time.Millisecond // for those that were cut then
	closeTime = time.Minute            // for the node, syncs being cut
)

// Bounds of a request's head.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Run is the daemon.
func (c serveCmd) Run(ctx context.Context, a *app) (err error) {
	core := a.logCore()
	defer func() { _ = core.Sync() }() // standard error may not be a file
	log := slog.New(logHandler(core))
	// What peers and strangers can cause is bounded; the node does so itself.
	bounded := loglimit.New(log.Handler(), nil)
	gologshim.SetDefaultHandler(loglimit.New(logHandler(core, zapslog.WithName("libp2p")), nil))
	// quic-go writes its one warning, of small socket buffers, to the standard logger.
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(bounded, slog.LevelWarn).Writer())
	addrs, err := a.apiAddrs()
	if err != nil {
		return err
	}
	if err := makeDataDir(a.DataDir); err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := endpoint.Probe(ctx, addr); err != nil {
			return fmt.Errorf("serve %s: %w", a.DataDir, err)
		}
	}
	stop := keepMemory(int64(c.Memory))
	defer stop()
	metrics := newRegistry(buildVersion())
	store, err := c.open(ctx, a, slog.New(bounded), c.WatchLog)
	if err != nil {
		return err
	}
	defer closeStore(store, &err)
	if err := portsFree(ctx, c.Listen); err != nil {
		return err
	}
	node, err := peer.Open(ctx, peer.Config{
		Dir: a.DataDir, Store: store, StoreKind: c.kind(), ListenAddrs: c.Listen, AnnounceAddrs: c.Announce,
		Relays: c.Relay, RelayService: c.RelayService, MDNS: c.MDNS, SyncInterval: c.SyncInterval, NoPush: !c.Push, NoHost: c.NoHost, Memory: int64(c.Memory), DiskReserve: int64(c.DiskReserve), Repair: c.Repair, Bandwidth: c.bandwidth(), WatchLog: c.WatchLog, Logger: log, Registerer: metrics, Program: buildVersion().Version,
	})
	if err != nil {
		return a.notOpened(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if closed := node.Close(closing); err == nil { // else the cause is said alone
			err = closed
		}
	}()
	return c.serve(ctx, a, addrs, httpapi.Config{Node: node, Version: buildVersion(), Metrics: metrics, Logger: log})
}

// newRegistry holds the metrics of the program; those of the node come to them.
func newRegistry(v api.Program) *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "syncd_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": v.Version, "revision": v.Revision, "goversion": v.Go},
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// serve answers requests until the context is over.
func (c serveCmd) serve(ctx context.Context, a *app, addrs []endpoint.Addr, cfg httpapi.Config) (err error) {
	if slices.ContainsFunc(addrs, func(at endpoint.Addr) bool { return at.Network != "unix" }) {
		if cfg.Token, err = endpoint.MakeToken(a.tokenFile()); err != nil {
			return err
		}
	}
	ending, end := context.WithCancel(ctx)
	defer end()
	cfg.Ending = ending.Done()
	handler, err := httpapi.Handler(cfg)
	if err != nil {
		return err
	}
	// Requests outlive the signal by drainTime, and are cut then.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(loglimit.New(cfg.Logger.Handler(), nil), slog.LevelInfo),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	httpapi.BoundConnections(srv, durable.Descriptors())
	listeners, err := listenAll(ctx, addrs)
	if err != nil {
		return err
	}
	served := make(chan error, len(listeners))
	for i, l := range listeners {
		go func() { served <- fmt.Errorf("serving the API on %s: %w", addrs[i], srv.Serve(l)) }()
	}
	if err := a.announce(cfg.Node, addrs); err != nil {
		cfg.Logger.Warn("standard output is gone", slog.Any("error", err))
	}
	ended := 0
	var broken error
	select {
	case broken = <-served:
		ended++
	case broken = <-cfg.Node.Broken():
	case <-ctx.Done():
	}
	cfg.Logger.Info("shutting down")
	end()
	timer := time.AfterFunc(drainTime, cut)
	defer timer.Stop()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime+cutTime)
	defer cancel()
	if err := srv.Shutdown(draining); err != nil {
		cfg.Logger.Warn("requests were cut", slog.Any("error", errors.Join(err, srv.Close())))
	}
	for ; ended < len(listeners); ended++ {
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			broken = errors.Join(broken, err)
		}
	}
	return broken
}

// listenAll opens all of the addresses, or gives them back.
func listenAll(ctx context.Context, addrs []endpoint.Addr) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, addr := range addrs {
		l, err := endpoint.Listen(ctx, addr)
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// announce says where the daemon can be reached, once it can be.
func (a *app) announce(node *peer.Node, addrs []endpoint.Addr) error {
	at := written(addrs)
	a.print(map[string]any{"id": node.ID().String(), "addrs": node.Addrs(), "api": at}, func() {
		for _, at := range node.Addrs() {
			a.printf("listening on %s\n", at)
		}
		a.printf("node %s serves the API on %s\n", node.ID(), strings.Join(at, " and "))
	})
	return a.stdout.taken()
}

// notOpened explains why a node could not be opened.
func (a *app) notOpened(err error) error {
	if errors.Is(err, peer.ErrLocked) {
		return fmt.Errorf("open %s: %w: another daemon is running on this data directory; stop it first, or choose another --data-dir", a.DataDir, err)
	}
	err = fmt.Errorf("open %s: %w", a.DataDir, err)
	if errors.Is(err, peer.ErrRepairable) {
		return &hintedError{err, fmt.Sprintf("run: syncd --data-dir %[1]s verify --repair; then start the daemon again", a.DataDir)}
	}
	return err
}

// othersWrite is the mode bit of a folder in which every user makes files.
const othersWrite = 0o002

// makeDataDir makes the folder for its owner only. A folder that exists keeps its
// mode, but is refused if every user can write in it: a user that replaces its
// files replaces the node.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if mode := info.Mode().Perm(); mode&othersWrite != 0 && runtime.GOOS != "windows" { // which has no modes
		return fmt.Errorf("the data directory %s can be written by every user (mode %04o); close it with: chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// portsFree reports ports that another program holds. libp2p shares TCP ports
// (SO_REUSEPORT) and takes one address of several for a success, so that two
// daemons would take each other's connections.
func portsFree(ctx context.Context, addrs []string) error {
	for _, text := range addrs {
		network, address, err := peerAddr("listen", text)
		if err != nil {
			return err
		}
		var lc net.ListenConfig
		var held io.Closer
		if strings.HasPrefix(network, "udp") {
			held, err = lc.ListenPacket(ctx, network, address)
		} else {
			held, err = lc.Listen(ctx, network, address)
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: the port is in use; stop what uses it, or choose another with --listen", text)
		}
		if err != nil {
			return fmt.Errorf("listen on %s: %w", text, err)
		}
		if err := held.Close(); err != nil {
			return err
		}
	}
	return nil
}

// portsValid reports addresses in the value of a flag that lead to no port of TCP
// or QUIC.
func portsValid(flag string, addrs []string) error {
	for _, text := range addrs {
		if _, _, err := peerAddr(flag, text); err != nil {
			return err
		}
	}
	return nil
}

// peerAddr is a multiaddr, the value of a flag, as package net writes it.
func peerAddr(flag, text string) (network, address string, err error) {
	m, err := ma.NewMultiaddr(text)
	if err == nil {
		network, address, err = manet.DialArgs(m)
	}
	quic := len(m) == 3 && m[2].Protocol().Code == ma.P_QUIC_V1
	if err != nil || strings.HasPrefix(network, "tcp") == quic || network == "unix" {
		return "", "", problem.Usage("--%s %s: want a TCP or QUIC address such as /ip4/192.0.2.7/tcp/4747 or /ip4/192.0.2.7/udp/4747/quic-v1", flag, text)
	}
	return network, address, nil
}

// relaysValid reports values of --relay that name no relay.
func relaysValid(addrs []string) error {
	for _, text := range addrs {
		m, err := ma.NewMultiaddr(text)
		if err == nil {
			_, err = m.ValueForProtocol(ma.P_P2P)
		}
		if err != nil {
			return problem.Usage("--relay %s: want an address with an id, such as /ip4/192.0.2.7/tcp/4747/p2p/12D3KooW…", text)
		}
	}
	return nil
}
