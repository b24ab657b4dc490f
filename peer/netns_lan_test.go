package peer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// netnsLAN is a node in a folder that does as it is told, line by line.
func netnsLAN(ctx context.Context, args []string, in *bufio.Scanner) error {
	var h host.Host
	var n *peer.Node
	end := func() error {
		if n == nil {
			return nil
		}
		return errors.Join(n.Close(ctx), h.Close())
	}
	defer end()
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "open": // PORT, whether with mDNS
			if err := end(); err != nil {
				return err
			}
			var err error
			if h, n, err = netnsOpen(ctx, args[0], words[1], words[2] == "mdns"); err != nil {
				return err
			}
			fmt.Println("open")
		case "create":
			if _, err := n.CreateNamespace(ctx, "notes", peer.Policy{}); err != nil {
				return err
			}
			fmt.Println("created")
		case "invite":
			ns, err := n.Namespace("notes")
			if err != nil {
				return err
			}
			ticket, err := ns.Invite(ctx, peer.InviteOptions{})
			if err != nil {
				return err
			}
			fmt.Println(ticket)
		case "join":
			if _, err := n.Join(ctx, words[1]); err != nil {
				return err
			}
			fmt.Println("joined")
		case "find": // a member, without being told where it is
			for !slices.ContainsFunc(n.Peers(), func(p status.Peer) bool { return p.Connected }) {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			fmt.Println("found")
		case "connections":
			fmt.Println(len(h.Network().Peers()))
		}
	}
	return nil
}

func netnsOpen(ctx context.Context, dir, port string, mdns bool) (host.Host, *peer.Node, error) {
	// The key is that of the folder.
	first, err := peer.Open(ctx, peer.Config{Dir: dir, ListenAddrs: []string{}})
	if err != nil {
		return nil, nil, err
	}
	key := first.Key()
	if err := first.Close(ctx); err != nil {
		return nil, nil, err
	}
	h, err := peer.NewHost(peer.Config{Identity: key, ListenAddrs: []string{"/ip4/0.0.0.0/tcp/" + port, "/ip4/0.0.0.0/udp/" + port + "/quic-v1"}})
	if err != nil {
		return nil, nil, err
	}
	n, err := peer.Open(ctx, peer.Config{Dir: dir, Host: h, MDNS: mdns})
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	return h, n, nil
}

// Two members on one local network find one another by mDNS after both have
// moved, and a node that is no member stays alone.
func TestMDNS(t *testing.T) {
	near, clients := netnsStar(t, 1)
	far := clients[0]
	a, b, stranger := near.start("lan", t.TempDir()), far.start("lan", t.TempDir()), far.start("lan", t.TempDir())
	do := func(p *netnsProcess, command, answer string) {
		t.Helper()
		p.say(command)
		p.want(answer)
	}
	do(stranger, "open 4003 mdns", "open")
	do(a, "open 4001 quiet", "open")
	do(a, "create", "created")
	a.say("invite")
	ticket := a.line()
	do(b, "open 4001 quiet", "open")
	do(b, "join "+ticket, "joined")
	// Each moves to another port while the other is away.
	do(b, "open 4002 mdns", "open")
	do(a, "open 4005 mdns", "open")
	do(a, "find", "found")
	do(b, "find", "found")
	do(stranger, "connections", "0")
	do(a, "connections", "1")
}
