package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// cureTwins is what to do about two nodes of one identity.
var cureTwins = fmt.Sprintf("stop one of the two, and give it an identity of its own with \"syncd init --new-identity\"; the other is synced with again %.0f minutes later", peer.TwinLife.Minutes())

// membershipTroubles says what keeps the members from syncing with this node, or it
// from syncing with one of them, and what it has lost.
func membershipTroubles(ns *api.Namespace) (troubles []string) {
	if r := ns.Removed; r != nil {
		why := ""
		if r.Expired {
			why = ": its role was given for a time"
		}
		troubles = append(troubles, fmt.Sprintf("this node was removed from the list of members by %s at %s%s; what it holds stays; ask an admin for a new invitation", r.By, r.At.Format(time.RFC3339), why))
	}
	if ns.Role == "none" && ns.Removed == nil {
		troubles = append(troubles, `this node is not a member: have an admin make a ticket with "syncd invite", and join with it here (syncd join)`)
	}
	if t := ns.Twinned; t != nil {
		troubles = append(troubles, fmt.Sprintf("another node runs with this one's identity, as %s found at %s: a copy of the data directory is running; %s", t.By, t.At.Format(time.RFC3339), cureTwins))
	}
	if ns.Damage != nil {
		troubles = append(troubles, damaged(ns.Damage, ns.Name))
	}
	if l := ns.Lost; l != nil {
		troubles = append(troubles, lostBy(l))
	}
	for _, t := range ns.Twins {
		var heard []string
		for _, at := range t.Heard {
			heard = append(heard, at.Format(time.TimeOnly))
		}
		troubles = append(troubles, fmt.Sprintf("two nodes run with the identity of %s, heard at %s: neither is synced with; %s", t.ID, strings.Join(heard, " and "), cureTwins))
	}
	return troubles
}

// damaged says what was met of damage, and how it ends.
func damaged(d *status.Damage, name string) string {
	verify := strings.TrimSuffix("syncd verify "+name, " ")
	return fmt.Sprintf("the store is damaged, as was met %s since %s: %s; stop the daemon, run syncd verify --repair, and start it again; where the fault was elsewhere, %s shows that nothing is damaged, and ends this",
		countOf(d.Findings, "time"), d.At.Format(time.RFC3339), strings.Join(d.Found[:min(1, len(d.Found))], "; "), verify)
}

// lonely says that no other member of a namespace is connected, while there are some.
func lonely(ns *api.Namespace, peers []status.Peer) []string {
	others := 0
	for _, p := range peers {
		if !slices.Contains(p.Namespaces, ns.Name) {
			continue
		}
		if p.Connected {
			return nil
		}
		others++
	}
	if others == 0 || ns.Role == "none" {
		return nil
	}
	return []string{fmt.Sprintf("no connection to another member (%d are known), and so no syncs: see that one runs and that its address is right (syncd peer ls shows them, syncd peer add gives one)", others)}
}

// shardsLine says which shards a node holds, of how many.
func shardsLine(s *status.Shards, p *api.Placement) string {
	if s.Epoch == 0 {
		return fmt.Sprintf("%d held of %d; no layout is known here yet", s.Held, p.Shards)
	}
	line := fmt.Sprintf("%d held of %d, %d whole, by layout %d", s.Held, p.Shards, s.Whole, s.Epoch)
	for _, part := range []struct {
		n    int
		text string
	}{{s.Fetching, "to fetch"}, {s.Dropping, "to drop"}, {s.Moving, "move to other hosts"}} {
		if part.n > 0 {
			line += fmt.Sprintf("; %d %s", part.n, part.text)
		}
	}
	return line
}

// shortOf says that shards have fewer replicas than they are to have, and what to do.
func shortOf(ns *api.Namespace) []string {
	s, p := ns.Shards, ns.Policy.Placement
	if s == nil || p == nil || ns.Role == "none" {
		return nil
	}
	if s.Epoch == 0 {
		return []string{"which members hold which shard is not known here yet: sync with a member (syncd sync)"}
	}
	if s.Short == 0 {
		return nil
	}
	cure := "members that may write become further hosts by themselves while an admin's node runs; if it stays so, see that the members run, go on without one that is away (syncd member rm, syncd member lapse), or invite more (syncd invite)"
	if ns.Members < p.Replicas {
		cure = "invite more members (syncd invite)"
	}
	return []string{fmt.Sprintf("%d of %d shards are held by fewer than %s: %s", s.Short, p.Shards, countOf(p.Replicas, "host"), cure)}
}

// clockOff says how this machine's clock differs from its peers'.
func clockOff(c *api.Clock) string {
	way, by := "ahead of", c.Offset
	if by < 0 {
		way, by = "behind", -by
	}
	d := time.Duration(by * float64(time.Second)).Round(time.Millisecond)
	if c.Peers == 1 {
		return fmt.Sprintf("%s %s that of the peer: set the one that is wrong", d, way)
	}
	return fmt.Sprintf("%s %s those of %d peers (their median): set it", d, way, c.Peers)
}
