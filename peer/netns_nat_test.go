package peer_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

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
