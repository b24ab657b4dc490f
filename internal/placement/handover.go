package placement

import "github.com/syncd-io/syncd/internal/roster"

// Handover says when a node may drop a shard that it holds and is no host of. It knows
// one shard at one node, and is for one goroutine at a time. The zero value is ready.
//
// A node drops a shard once it has been found equal in it with each of the shard's hosts,
// in syncs that began, on both sides, under the list that it has now. So each record that
// it drops was taken, after the node's last change of mind, by a node that took itself for
// a host by the same list, and that has the same duty from then on. This holds however
// the layouts differ between nodes, and if one that had counted counts no longer: a record
// that is lost would have to be dropped by a last node, which had passed it on to another
// one that dropped it before, and so to one that dropped it later.
//
// While it is no host of the shard, a node takes no new records for it: it refuses them,
// and names the hosts.
type Handover struct {
	term  Term
	hosts []roster.ID
	equal map[roster.ID]bool
}

// Term is the time in which what a node has been found equal in goes on to count.
type Term uint64

// Hosts tells the hosts of the shard under the layout that counts here now; without any,
// they are not known, and the shard is kept. It is to be called when the node has opened
// the shard, and with each change of its list of members.
func (h *Handover) Hosts(hosts []roster.ID) { h.begin(); h.hosts = hosts }

// Changed is to be called when a record enters the shard here by a sync that began in
// another term, or by a push that was sent under another list: the node that passed it on
// may count this one as a host, which it is no more.
func (h *Handover) Changed() { h.begin() }

func (h *Handover) begin() { h.term++; h.equal = map[roster.ID]bool{} }

// Term is the one that a sync belongs to which begins now: whose snapshot is taken now.
func (h *Handover) Term() Term { return h.term }

// Equal notes a sync of the whole shard, both ways, that has proved this node and a peer
// equal. It began in the term, and the peer's list was this node's then. It reports
// whether that counts.
func (h *Handover) Equal(peer roster.ID, term Term) bool {
	if term != h.term {
		return false
	}
	if h.equal == nil {
		h.equal = map[roster.ID]bool{}
	}
	h.equal[peer] = true
	return true
}

// Missing are the hosts with which the node has not been found equal yet. Itself is among
// them if it is a host.
func (h *Handover) Missing() (missing []roster.ID) {
	for _, id := range h.hosts {
		if !h.equal[id] {
			missing = append(missing, id)
		}
	}
	return missing
}

// MayDrop reports whether the node may drop the shard.
func (h *Handover) MayDrop() bool { return len(h.hosts) > 0 && len(h.Missing()) == 0 }
