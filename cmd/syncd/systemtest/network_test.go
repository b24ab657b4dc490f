//go:build linux

package systemtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// network is a network namespace of a test's own: its loopback carries nothing but what
// the daemons in it tell each other, since the API is a unix socket.
type network struct {
	t       *testing.T
	name    string
	address string // on which daemons in it listen
}

var networks int // made by this process

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: what daemons send is counted in a network namespace, which only root can make; run this test as root")
	}
	networks++
	n := &network{t, fmt.Sprintf("syncd-live-%d-%d", os.Getpid(), networks), "127.0.0.1"}
	n.run("ip", "netns", "add", n.name)
	t.Cleanup(func() { n.run("ip", "netns", "del", n.name) })
	n.run("ip", "-n", n.name, "link", "set", "lo", "up")
	return n
}

func (n *network) run(command ...string) string {
	n.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// command is one that runs in the network; the process is the command's own, since ip
// becomes it.
func (n *network) command(program string, arguments ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.name, program}, arguments...)...)
}

// bytes is how many bytes have gone over the wires, the headers of Ethernet, IP and TCP
// included.
func (n *network) bytes() float64 {
	n.t.Helper()
	for line := range strings.Lines(n.run("ip", "netns", "exec", n.name, "cat", "/proc/net/dev")) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[0] != "lo:" {
			continue
		}
		sent, err := strconv.ParseFloat(fields[9], 64)
		if err != nil {
			n.t.Fatal(err)
		}
		return sent
	}
	n.t.Fatal("the network has no loopback")
	return 0
}

// lose makes the network lose that share of the packets.
func (n *network) lose(percent int) {
	n.t.Helper()
	for _, command := range []string{
		"add table ip lossy",
		"add chain ip lossy input { type filter hook input priority 0 ; }",
		fmt.Sprintf("add rule ip lossy input numgen random mod 100 < %d drop", percent),
	} {
		n.run(append([]string{"ip", "netns", "exec", n.name, "nft"}, strings.Fields(command)...)...)
	}
}
