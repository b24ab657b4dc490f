package sim

// Say carries a message from one node to another, outside streams. It may be lost, doubled
// and overtaken as a frame may, and is not sent again. message tells messages apart.
func (n *Net) Say(from, to int, message uint64, arrive func()) {
	// Streams count from 0 for each link, messages in another range.
	stream := 1<<63 | message
	n.frames++
	if n.loses(from, to, stream, uint64(to), 0) {
		return
	}
	copies := uint64(1)
	if n.world.Chance(n.usual.Duplicate, ForDuplicate, stream, uint64(to), 0) {
		copies = 2
	}
	machine := n.machines[from]
	for i := range copies {
		n.later(n.takes(stream, uint64(to), i), func() {
			if n.machines[from] == machine {
				arrive()
			}
		})
	}
}
