//go:build linux

package systemtest

import (
	"fmt"
	"strings"
	"testing"
)

// newRing makes machines of which each takes packets from its two neighbours alone.
func newRing(t *testing.T, n int) (ring []*network) {
	t.Helper()
	ring = newMachines(t, n)
	for i, at := range ring {
		at.nft("add table ip ring")
		at.nft("add chain ip ring input { type filter hook input priority 0 ; }")
		at.nft(fmt.Sprintf("add rule ip ring input iif eth0 ip saddr != { %s, %s } drop", ringAddress((i+1)%n), ringAddress((i+n-1)%n)))
	}
	return ring
}

// newMachines makes as many networks, of one machine each, at one switch.
func newMachines(t *testing.T, n int) (all []*network) {
	t.Helper()
	middle := newNetwork(t)
	middle.ip("link", "add", "switch", "type", "bridge")
	middle.ip("link", "set", "switch", "up")
	for i := range n {
		at := newNetwork(t)
		at.address = ringAddress(i)
		port := fmt.Sprint("port", i)
		middle.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", at.name)
		middle.ip("link", "set", port, "master", "switch", "up")
		at.ip("addr", "add", at.address+"/24", "dev", "eth0")
		at.ip("link", "set", "eth0", "up")
		all = append(all, at)
	}
	return all
}

func ringAddress(i int) string { return fmt.Sprintf("10.47.0.%d", i+1) }

// part makes the machines of each side take no packet from those of the other; heal ends that.
func part(one, other []*network) {
	for _, sides := range [][2][]*network{{one, other}, {other, one}} {
		var from []string
		for _, n := range sides[1] {
			from = append(from, n.address)
		}
		for _, n := range sides[0] {
			n.nft("add table ip cut")
			n.nft("add chain ip cut input { type filter hook input priority -1 ; }")
			n.nft(fmt.Sprintf("add rule ip cut input ip saddr { %s } drop", strings.Join(from, ", ")))
		}
	}
}

// cut makes the machine take no packet any more; heal ends that.
func (n *network) cut() {
	n.t.Helper()
	n.nft("add table ip cut")
	n.nft("add chain ip cut input { type filter hook input priority -1 ; policy drop ; }")
}

func (n *network) heal() {
	n.t.Helper()
	n.nft("delete table ip cut")
}

// ip changes the network.
func (n *network) ip(command ...string) {
	n.t.Helper()
	n.run(append([]string{"ip", "-n", n.name}, command...)...)
}

// nft changes the rules by which it takes packets.
func (n *network) nft(command string) {
	n.t.Helper()
	n.run(append([]string{"ip", "netns", "exec", n.name, "nft"}, strings.Fields(command)...)...)
}
