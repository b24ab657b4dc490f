package peer_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
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
	"server": netnsServer,
	"crowd":  netnsCrowd,
	"silent": netnsSilent,
	"member": netnsMember,
	"lan":    netnsLAN,
	"nat":    netnsNAT,
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

// netnsServer is a node that others join, over the transport that it is given: it prints a ticket for each line that
// comes in, and in the end how many records it holds.
func netnsServer(ctx context.Context, args []string, in *bufio.Scanner) error {
	listen := map[string]string{"tcp": "/ip4/0.0.0.0/tcp/%d", "quic": "/ip4/0.0.0.0/udp/%d/quic-v1"}[args[0]]
	n, err := peer.Open(ctx, peer.Config{ListenAddrs: []string{fmt.Sprintf(listen, netnsPort)}})
	if err != nil {
		return err
	}
	defer n.Close(ctx)
	// Unsigned: the nodes do not know those that join after them.
	ns, err := n.CreateNamespace(ctx, "notes", peer.Policy{Unsigned: true})
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for in.Scan() {
		if in.Text() == "count" {
			fmt.Println(ns.Info().Records)
			continue
		}
		ticket, err := ns.Invite(ctx, peer.InviteOptions{})
		if err != nil {
			return err
		}
		fmt.Println(ticket)
	}
	return nil
}

// netnsCrowd is as many nodes as there are tickets. They stay open until all
// have joined, written and synced.
func netnsCrowd(ctx context.Context, tickets []string, _ *bufio.Scanner) error {
	failed := make(chan error, len(tickets))
	var nodes []*peer.Node
	defer func() {
		for _, n := range nodes {
			n.Close(ctx)
		}
	}()
	for i, ticket := range tickets {
		n, err := peer.Open(ctx, peer.Config{})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		go func() { failed <- joinAndSync(ctx, n, ticket, strconv.Itoa(i)) }()
	}
	for range tickets {
		if err := <-failed; err != nil {
			return err
		}
	}
	fmt.Println("synced")
	return nil
}

func joinAndSync(ctx context.Context, n *peer.Node, ticket, key string) error {
	ns, err := n.Join(ctx, ticket)
	if err != nil {
		return err
	}
	if _, err := ns.Put(ctx, []byte(key), []byte("value")); err != nil {
		return err
	}
	return syncWithServer(ctx, n, ns)
}

func syncWithServer(ctx context.Context, n *peer.Node, ns *peer.Namespace) error {
	for _, m := range ns.Members() {
		if m.ID != n.ID() && m.Role == peer.RoleAdmin {
			report, err := ns.Sync(ctx, m.ID, peer.SyncOptions{})
			if err == nil && !report.Verified {
				err = fmt.Errorf("not verified: %+v", report)
			}
			return err
		}
	}
	return fmt.Errorf("no admin among %v", ns.Members())
}

// netnsSilent opens connections to an address, says nothing, and opens each anew
// that is closed.
func netnsSilent(ctx context.Context, args []string, in *bufio.Scanner) error {
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
	fmt.Println("silent")
	in.Scan() // the end of the test
	cancel()
	all.Wait()
	return nil
}

// netnsMember joins with its ticket, closes its node, and syncs with a new one on
// the same folder when it is told to.
func netnsMember(ctx context.Context, args []string, in *bufio.Scanner) error {
	dir, ticket, key := args[0], args[1], args[2]
	n, err := peer.Open(ctx, peer.Config{Dir: dir})
	if err != nil {
		return err
	}
	if err := joinAndSync(ctx, n, ticket, key); err != nil {
		return err
	}
	if err := n.Close(ctx); err != nil {
		return err
	}
	fmt.Println("joined")
	for in.Scan() {
		if n, err = peer.Open(ctx, peer.Config{Dir: dir}); err != nil {
			return err
		}
		ns, err := n.Namespace("notes")
		if err != nil {
			return err
		}
		began := time.Now()
		if err := syncWithServer(ctx, n, ns); err != nil {
			return fmt.Errorf("%w, after %s", err, time.Since(began))
		}
		if err := n.Close(ctx); err != nil {
			return err
		}
		fmt.Println("synced")
	}
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

func (p *netnsProcess) want(answer string) {
	p.t.Helper()
	if got := p.line(); got != answer {
		p.t.Errorf("the %s answers %q, want %q", p.role, got, answer)
	}
}

func (p *netnsProcess) say(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Errorf("the %s does not listen: %v", p.role, err)
	}
}

func (p *netnsProcess) tickets(count int) (tickets []string) {
	for range count {
		p.say("invite")
		tickets = append(tickets, p.line())
	}
	return tickets
}

// Many nodes behind one address, as behind a router, connect and sync at once.
func TestNodesBehindOneAddress(t *testing.T) {
	for _, transport := range []string{"tcp", "quic"} {
		t.Run(transport, func(t *testing.T) { nodesBehindOneAddress(t, transport) })
	}
}

func nodesBehindOneAddress(t *testing.T, transport string) {
	const nodes = 20
	at, clients := netnsStar(t, 1)
	server := at.start("server", transport)
	server.want("listening")
	crowd := clients[0].start("crowd", server.tickets(nodes)...)
	crowd.want("synced")
	server.say("count")
	server.want(strconv.Itoa(nodes))
}

// Connections that say nothing keep out no member, whether it comes from another
// address or from theirs.
func TestSilentConnectionsKeepNoMemberOut(t *testing.T) {
	at, clients := netnsStar(t, 2)
	server := at.start("server", "tcp")
	server.want("listening")
	tickets := server.tickets(3)
	beside := clients[0].start("member", t.TempDir(), tickets[0], "beside")
	beside.want("joined")
	elsewhere := clients[1].start("member", t.TempDir(), tickets[1], "elsewhere")
	elsewhere.want("joined")
	// More than there are places for connections without an identity, in all.
	clients[0].start("silent", fmt.Sprintf("10.0.0.1:%d", netnsPort), "400").want("silent")
	for range 2 {
		elsewhere.say("sync")
		elsewhere.want("synced")
		beside.say("sync")
		beside.want("synced")
	}
	clients[1].start("crowd", tickets[2]).want("synced") // and one that joins now
	server.say("count")
	server.want("3")
}
