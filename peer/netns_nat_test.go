package peer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/syncd-io/syncd/peer"
)

// netnsNAT is a node in a folder that does as it is told, line by line.
func netnsNAT(ctx context.Context, args []string, in *bufio.Scanner) error {
	var n natNode
	defer n.close(ctx)
	for in.Scan() {
		words := strings.Fields(in.Text())
		answer, err := n.obey(ctx, args[0], words[0], words[1:])
		if err != nil {
			return fmt.Errorf("%s: %w", in.Text(), err)
		}
		fmt.Println(answer)
	}
	return nil
}

type natNode struct {
	host host.Host
	node *peer.Node
}

func (n *natNode) close(ctx context.Context) error {
	if n.node == nil {
		return nil
	}
	err := errors.Join(n.node.Close(ctx), n.host.Close())
	n.node = nil
	return err
}

// obey carries out a command, and returns the answer.
func (n *natNode) obey(ctx context.Context, dir, command string, words []string) (answer string, err error) {
	if command == "open" { // ROLE, with "service" a relay's; RELAY…
		return n.open(ctx, dir, words)
	}
	if command == "create" {
		_, err := n.node.CreateNamespace(ctx, "notes", peer.Policy{})
		return "created", err
	}
	if command == "join" { // TICKET
		_, err := n.node.Join(ctx, words[0])
		return "joined", err
	}
	if command == "connect" { // ADDRESS
		_, err := n.node.Connect(ctx, words[0])
		return "connected", err
	}
	if command == "place" { // at its relay
		return "placed", n.until(ctx, new(event.EvtLocalAddressesUpdated), func() bool {
			return slices.ContainsFunc(n.node.Addrs(), func(a string) bool { return strings.Contains(a, "/p2p-circuit/") })
		})
	}
	ns, err := n.node.Namespace("notes")
	if err != nil {
		return "", err
	}
	switch command {
	case "invite":
		return ns.Invite(ctx, peer.InviteOptions{Role: peer.RoleAdmin})
	case "put": // KEY
		_, err := ns.Put(ctx, []byte(words[0]), []byte("value"))
		return "put", err
	case "sync": // ID
		id, err := libp2ppeer.Decode(words[0])
		if err != nil {
			return "", err
		}
		report, err := ns.Sync(ctx, id, peer.SyncOptions{})
		return fmt.Sprintf("synced, %d came", report.Applied), err
	case "direct": // ID
		id, err := libp2ppeer.Decode(words[0])
		if err != nil {
			return "", err
		}
		// No relay carries the connection.
		return "direct", n.until(ctx, new(event.EvtPeerConnectednessChanged), func() bool { return n.host.Network().Connectedness(id) == network.Connected })
	}
	return "", errors.New("no such command")
}

// open opens the node, on the same port each time.
func (n *natNode) open(ctx context.Context, dir string, words []string) (string, error) {
	if err := n.close(ctx); err != nil {
		return "", err
	}
	first, err := peer.Open(ctx, peer.Config{Dir: dir, ListenAddrs: []string{}})
	if err != nil {
		return "", err
	}
	key := first.Key()
	if err := first.Close(ctx); err != nil {
		return "", err
	}
	n.host, err = peer.NewHost(peer.Config{
		Identity: key, RelayService: words[0] == "service", Relays: words[1:],
		ListenAddrs: []string{fmt.Sprintf("/ip4/0.0.0.0/tcp/%d", netnsPort), fmt.Sprintf("/ip4/0.0.0.0/udp/%d/quic-v1", netnsPort)},
	})
	if err != nil {
		return "", err
	}
	if n.node, err = peer.Open(ctx, peer.Config{Dir: dir, Host: n.host}); err != nil {
		return "", errors.Join(err, n.host.Close())
	}
	return n.node.ID().String(), nil
}

// until waits for something to become so, which an event of the host announces.
func (n *natNode) until(ctx context.Context, of any, so func() bool) error {
	changes, err := n.host.EventBus().Subscribe(of, eventbus.BufSize(64))
	if err != nil {
		return err
	}
	defer changes.Close()
	for !so() {
		select {
		case <-changes.Out():
		case <-ctx.Done():
			return fmt.Errorf("%w; the node has the addresses %v, and the connections %v", ctx.Err(), n.node.Addrs(), n.host.Network().Conns())
		}
	}
	return nil
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
	relay := internet.start("nat", t.TempDir())
	do := func(p *netnsProcess, command string) string {
		t.Helper()
		p.say(command)
		return p.line()
	}
	want := func(p *netnsProcess, command, answer string) {
		t.Helper()
		if got := do(p, command); got != answer {
			t.Fatalf("%s: %q, want %q", command, got, answer)
		}
	}
	relayID := do(relay, "open service")
	address := fmt.Sprintf("/ip4/11.0.0.1/tcp/%d/p2p/%s", netnsPort, relayID)
	want(relay, "create", "created")
	var nodes []*netnsProcess
	var ids []string
	for _, at := range behind {
		p := at.start("nat", t.TempDir())
		do(p, "open node")
		want(p, "join "+do(relay, "invite"), "joined")
		ids = append(ids, do(p, "open node "+address))
		want(p, "place", "placed")
		nodes = append(nodes, p)
	}
	a, b := nodes[0], nodes[1]
	want(b, "put k", "put")
	want(a, "sync "+relayID, "synced, 0 came")
	want(a, "connect "+address+"/p2p-circuit/p2p/"+ids[1], "connected")
	want(a, "sync "+ids[1], "synced, 1 came")
	want(a, "direct "+ids[1], "direct")
	want(b, "direct "+ids[0], "direct")
	must(t, relay.in.Close())
	relay.want("the process has ended")
	want(b, "put l", "put")
	want(a, "sync "+ids[1], "synced, 1 came")
}
