package peer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// The tests of this file run nodes in network namespaces of their own, since
// libp2p exempts loopback from its limits. The test binary starts itself again
// in each, in a role; commands go in by standard input, answers come out as
// lines.

// netnsRole is the environment variable that gives a process its role.
const netnsRole = "SYNCD_TEST_NETNS_ROLE"

// netnsPatience ends a role, and the wait for its answer.
const netnsPatience = 5 * time.Minute

const netnsPort = 4001

// netnsRoles are what a process in a namespace can be. Each gets its arguments
// and ends when it returns.
var netnsRoles = map[string]func(ctx context.Context, args []string, in *bufio.Scanner) error{
	"node":   playNode,
	"crowd":  playCrowd,
	"silent": playSilent,
}

// playNetnsRole runs this process in its role, if it has one.
func playNetnsRole() {
	role, _, _ := strings.Cut(os.Getenv(netnsRole), " ")
	if role == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), netnsPatience)
	defer cancel()
	if err := netnsRoles[role](ctx, strings.Fields(os.Getenv(netnsRole))[1:], bufio.NewScanner(os.Stdin)); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playNode is a node in a folder that does as it is told, line by line.
func playNode(ctx context.Context, args []string, in *bufio.Scanner) error {
	n := netnsNode{dir: args[0]}
	defer n.close(ctx)
	for in.Scan() {
		answer, err := n.obey(ctx, in.Text())
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return nil
}

// playCrowd is as many nodes as there are tickets behind the id of the inviter. They
// stay open until all have joined, written and synced.
func playCrowd(ctx context.Context, args []string, _ *bufio.Scanner) error {
	var all errgroup.Group
	for i, ticket := range args[1:] {
		n := new(netnsNode)
		defer n.close(ctx)
		all.Go(func() error {
			for _, command := range []string{"open", "join " + ticket, fmt.Sprint("put crowd", i), "sync " + args[0]} {
				_, err := n.obey(ctx, command)
				for errors.Is(err, peer.ErrUnreachable) && machine.Sleep(ctx, 100*time.Millisecond) == nil {
					_, err = n.obey(ctx, command) // a busy machine takes long for so many handshakes
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// netnsNode is a node that does as it is told.
type netnsNode struct {
	dir  string
	node *peer.Node // nil: it was not opened yet
}

func (n *netnsNode) close(ctx context.Context) error {
	if n.node == nil {
		return nil
	}
	return n.node.Close(ctx)
}

// obey carries out a command, and returns the answer: "done" where there is nothing to tell.
func (n *netnsNode) obey(ctx context.Context, line string) (answer string, err error) {
	command, word, _ := strings.Cut(line, " ")
	if command == "open" {
		return n.open(ctx, strings.Fields(word))
	}
	ns, _ := n.node.Namespace("notes") // nil before it is created or joined
	var id peer.ID
	if command == "sync" || command == "direct" {
		id, err = libp2ppeer.Decode(word)
	}
	answer = "done"
	began := time.Now()
	switch command {
	case "create":
		// Unsigned: the nodes do not know those that join after them.
		_, err = n.node.CreateNamespace(ctx, "notes", peer.Policy{Unsigned: true})
	case "invite":
		answer, err = ns.Invite(ctx, peer.InviteOptions{})
	case "join": // TICKET
		_, err = n.node.Join(ctx, word)
	case "connect": // ADDRESS
		_, err = n.node.Connect(ctx, word)
	case "put": // KEY
		_, err = ns.Put(ctx, []byte(word), []byte("value"))
	case "sync": // ID
		var report reconcile.Report
		if report, err = ns.Sync(ctx, id, peer.SyncOptions{}); err == nil && !report.Verified {
			err = fmt.Errorf("not verified: %+v", report)
		}
	case "count":
		answer = fmt.Sprint(ns.Info().Records)
	case "connections":
		answer = strconv.Itoa(len(n.node.Network().Peers()))
	case "find": // a member, without being told where it is
		err = until(ctx, func() bool {
			return slices.ContainsFunc(n.node.Peers(), func(p status.Peer) bool { return p.Connected })
		})
	case "place": // at its relay
		err = until(ctx, func() bool {
			return slices.ContainsFunc(n.node.Addrs(), func(a string) bool { return strings.Contains(a, "/p2p-circuit/") })
		})
	case "direct": // ID: no relay carries the connection
		err = until(ctx, func() bool { return n.node.Network().Connectedness(id) == network.Connected })
	default:
		err = errors.New("no such command")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w, after %s; the node has the addresses %v, and the connections %v",
			line, err, time.Since(began), n.node.Addrs(), n.node.Network().Conns())
	}
	return answer, err
}

// open opens the node anew, and returns its id. Each word is "mdns", "service" of a relay, the
// address of a relay, or one to listen on.
func (n *netnsNode) open(ctx context.Context, words []string) (id string, err error) {
	if err := n.close(ctx); err != nil {
		return "", err
	}
	cfg := peer.Config{Dir: n.dir}
	for _, word := range words {
		switch {
		case word == "mdns":
			cfg.MDNS = true
		case word == "service":
			cfg.RelayService = true
		case strings.Contains(word, "/p2p/"):
			cfg.Relays = append(cfg.Relays, word)
		default:
			cfg.ListenAddrs = append(cfg.ListenAddrs, word)
		}
	}
	if n.node, err = peer.Open(ctx, cfg); err != nil {
		return "", err
	}
	return n.node.ID().String(), nil
}

// until waits for something to become so.
func until(ctx context.Context, so func() bool) error {
	for !so() {
		if err := machine.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// netnsTCP and netnsQUIC are where a node in a namespace listens, on a port.
const (
	netnsTCP  = "/ip4/0.0.0.0/tcp/%d"
	netnsQUIC = "/ip4/0.0.0.0/udp/%d/quic-v1"
)

// listening is the command that opens a node that listens on a port.
func listening(port int) string {
	return fmt.Sprintf("open "+netnsTCP+" "+netnsQUIC, port, port)
}

// playSilent opens connections to an address, says nothing, and opens each anew
// that is closed.
func playSilent(ctx context.Context, args []string, in *bufio.Scanner) error {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all, first sync.WaitGroup
	for range count {
		first.Add(1)
		all.Go(func() {
			for opened := false; ctx.Err() == nil; {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", args[0])
				if !opened {
					opened = true
					first.Done()
				}
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				io.Copy(io.Discard, conn) // until the server has had enough
				stop()
				conn.Close()
				select { // to come back at once would be another attack
				case <-time.After(4 * time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	first.Wait()
	fmt.Println("done")
	in.Scan() // the end of the test
	cancel()
	all.Wait()
	return nil
}

// netns is a network namespace, with one address.
type netns struct {
	t    *testing.T
	name string
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// newNetns makes a namespace of the test's own.
func newNetns(t *testing.T, name string) *netns {
	t.Helper()
	s := &netns{t, fmt.Sprintf("syncd-test-%d-%s", os.Getpid(), name)}
	ip(t, "netns", "add", s.name)
	t.Cleanup(func() { ip(t, "netns", "del", s.name) })
	ip(t, "-n", s.name, "link", "set", "lo", "up")
	return s
}

// netnsStar makes a namespace for a server and one for each of its clients, each
// joined to the server by a cable of its own. Client i has the address
// 10.0.i.2 and sees the server at 10.0.i.1. They touch no other network.
func netnsStar(t *testing.T, clients int) (server *netns, of []*netns) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: limits per address need network namespaces, which only root can make; run this test as root")
	}
	server = newNetns(t, "server")
	for i := range clients {
		c := newNetns(t, strconv.Itoa(i))
		near, far := fmt.Sprint("c", i), "eth0"
		ip(t, "-n", server.name, "link", "add", near, "type", "veth", "peer", "name", far, "netns", c.name)
		ip(t, "-n", server.name, "addr", "add", fmt.Sprintf("10.0.%d.1/24", i), "dev", near)
		ip(t, "-n", server.name, "link", "set", near, "up")
		ip(t, "-n", c.name, "addr", "add", fmt.Sprintf("10.0.%d.2/24", i), "dev", far)
		ip(t, "-n", c.name, "link", "set", far, "up")
		of = append(of, c)
	}
	return server, of
}

// netnsProcess is this test binary in a namespace, in a role.
type netnsProcess struct {
	t    *testing.T
	role string
	in   io.WriteCloser
	out  chan string
}

func (s *netns) start(role string, args ...string) *netnsProcess {
	s.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", s.name, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), netnsRole+"="+strings.Join(append([]string{role}, args...), " "))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &netnsProcess{s.t, role, in, make(chan string)}
	stop := make(chan struct{})
	go func() {
		defer close(p.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.out <- lines.Text():
			case <-stop:
			}
		}
	}()
	s.t.Cleanup(func() {
		close(stop)
		cmd.Process.Kill()
		for range p.out { // until the process has closed it
		}
		cmd.Wait()
	})
	return p
}

// line is the process's next answer.
func (p *netnsProcess) line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.out:
		if !ok {
			line = "the process has ended"
		}
		return line
	case <-time.After(netnsPatience):
		return "no answer"
	}
}

// do gives a command, and returns the answer.
func (p *netnsProcess) do(command string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Errorf("the %s does not listen: %v", p.role, err)
	}
	return p.line()
}

// wants fails the test unless the answer is the one that is wanted.
func (p *netnsProcess) wants(command, answer string) {
	p.t.Helper()
	if got := p.do(command); got != answer {
		p.t.Fatalf("%s: the %s answers %q, want %q", command, p.role, got, answer)
	}
}

// does gives commands that have nothing to tell.
func (p *netnsProcess) does(commands ...string) {
	p.t.Helper()
	for _, command := range commands {
		p.wants(command, "done")
	}
}

// done waits until the process has done what its role is.
func (p *netnsProcess) done() {
	p.t.Helper()
	if got := p.line(); got != "done" {
		p.t.Fatalf("the %s answers %q, want done", p.role, got)
	}
}

// server starts a node that others join.
func (s *netns) server(listen string) (server *netnsProcess, id string) {
	s.t.Helper()
	server = s.start("node", s.t.TempDir())
	id = server.do(fmt.Sprintf("open "+listen, netnsPort))
	server.does("create")
	return server, id
}

// Many nodes behind one address, as behind a router, connect and sync at once.
func TestNodesBehindOneAddress(t *testing.T) {
	for transport, listen := range map[string]string{"tcp": netnsTCP, "quic": netnsQUIC} {
		t.Run(transport, func(t *testing.T) {
			const nodes = 20
			at, clients := netnsStar(t, 1)
			server, id := at.server(listen)
			crowd := []string{id}
			for range nodes {
				crowd = append(crowd, server.do("invite"))
			}
			clients[0].start("crowd", crowd...).done()
			server.wants("count", strconv.Itoa(nodes))
		})
	}
}

// Connections that say nothing keep out no member, whether it comes from another
// address or from theirs.
func TestSilentConnectionsKeepNoMemberOut(t *testing.T) {
	at, clients := netnsStar(t, 2)
	server, id := at.server(netnsTCP)
	var members []*netnsProcess
	for i, at := range clients {
		m := at.start("node", t.TempDir())
		m.do("open")
		m.does("join "+server.do("invite"), fmt.Sprint("put ", i), "sync "+id)
		members = append(members, m)
	}
	// More than there are places for connections without an identity, in all.
	clients[0].start("silent", fmt.Sprintf("10.0.0.1:%d", netnsPort), "400").done()
	for range 2 {
		for _, m := range slices.Backward(members) {
			m.do("open") // it connects anew
			m.does("sync " + id)
		}
	}
	clients[1].start("crowd", id, server.do("invite")).done() // and one that joins now
	server.wants("count", "3")
}

// Two members on one local network find one another by mDNS after both have
// moved, and a node that is no member stays alone.
func TestMDNS(t *testing.T) {
	near, clients := netnsStar(t, 1)
	far := clients[0]
	a, b, stranger := near.start("node", t.TempDir()), far.start("node", t.TempDir()), far.start("node", t.TempDir())
	stranger.do(listening(4003) + " mdns")
	a.do(listening(4001))
	a.does("create")
	b.do(listening(4001))
	b.does("join " + a.do("invite"))
	// Each moves to another port while the other is away.
	b.do(listening(4002) + " mdns")
	a.do(listening(4005) + " mdns")
	a.does("find")
	b.does("find")
	stranger.wants("connections", "0")
	a.wants("connections", "1")
}

// natRules are those of a router in a home: what leaves bears its address; what
// comes unasked is dropped.
const natRules = `
table ip nat {
	chain leaving { type nat hook postrouting priority 100; oifname "wan" masquerade; }
}
table ip filter {
	chain through { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname "lan" accept; }
	chain own { type filter hook input priority 0; policy drop; ct state established,related accept; iifname "lan" accept; }
}
`

// netnsNATs makes a namespace that stands for the internet, with the address
// 11.0.0.1, and nodes behind a router each, which has the address 11.0.0.(i+2). The
// addresses are public ones, since libp2p punches no holes to others; no packet
// leaves the namespaces.
func netnsNATs(t *testing.T, count int) (internet *netns, behind []*netns) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: nodes behind routers need network namespaces, which only root can make; run this test as root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("NOT TESTED: a router needs nft, of the Debian package nftables; `make deps` installs it")
	}
	cable := func(a *netns, nameA, addrA string, b *netns, nameB, addrB string) {
		ip(t, "-n", a.name, "link", "add", nameA, "type", "veth", "peer", "name", nameB, "netns", b.name)
		for _, end := range [][3]string{{a.name, nameA, addrA}, {b.name, nameB, addrB}} {
			if end[2] != "" {
				ip(t, "-n", end[0], "addr", "add", end[2], "dev", end[1])
			}
			ip(t, "-n", end[0], "link", "set", end[1], "up")
		}
	}
	internet = newNetns(t, "internet")
	ip(t, "-n", internet.name, "link", "add", "exchange", "type", "bridge")
	ip(t, "-n", internet.name, "addr", "add", "11.0.0.1/24", "dev", "exchange")
	ip(t, "-n", internet.name, "link", "set", "exchange", "up")
	for i := range count {
		router, node := newNetns(t, fmt.Sprint("router", i)), newNetns(t, fmt.Sprint("behind", i))
		port := fmt.Sprint("port", i)
		cable(internet, port, "", router, "wan", fmt.Sprintf("11.0.0.%d/24", i+2))
		ip(t, "-n", internet.name, "link", "set", port, "master", "exchange")
		cable(router, "lan", fmt.Sprintf("192.168.%d.1/24", i), node, "eth0", fmt.Sprintf("192.168.%d.2/24", i))
		ip(t, "-n", node.name, "route", "add", "default", "via", fmt.Sprintf("192.168.%d.1", i))
		router.run("", "sysctl", "-qw", "net.ipv4.ip_forward=1")
		router.run(natRules, "nft", "-f", "-")
		behind = append(behind, node)
	}
	return internet, behind
}

// run runs a command in the namespace.
func (s *netns) run(input string, command ...string) {
	s.t.Helper()
	cmd := exec.Command("ip", append([]string{"netns", "exec", s.name}, command...)...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s in %s: %v: %s", strings.Join(command, " "), s.name, err, out)
	}
}

// Two nodes, each behind a router that lets nothing in unasked, sync through a relay
// and then get a direct connection, by which they sync when the relay is gone.
func TestHolePunching(t *testing.T) {
	internet, behind := netnsNATs(t, 2)
	relay := internet.start("node", t.TempDir())
	relayID := relay.do(listening(netnsPort) + " service")
	address := fmt.Sprintf("/ip4/11.0.0.1/tcp/%d/p2p/%s", netnsPort, relayID)
	relay.does("create")
	var nodes []*netnsProcess
	var ids []string
	for _, at := range behind {
		p := at.start("node", t.TempDir())
		p.do(listening(netnsPort))
		p.does("join " + relay.do("invite"))
		ids = append(ids, p.do(listening(netnsPort)+" "+address))
		p.does("place")
		nodes = append(nodes, p)
	}
	a, b := nodes[0], nodes[1]
	b.does("put k")
	a.does("sync "+relayID, "connect "+address+"/p2p-circuit/p2p/"+ids[1], "sync "+ids[1])
	a.wants("count", "1")
	a.does("direct " + ids[1])
	b.does("direct " + ids[0])
	must(t, relay.in.Close())
	if got := relay.line(); got != "the process has ended" {
		t.Fatalf("the relay goes on: %q", got)
	}
	b.does("put l")
	a.does("sync " + ids[1])
	a.wants("count", "2")
}
