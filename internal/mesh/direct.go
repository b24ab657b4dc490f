package mesh

import (
	"bufio"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// DirectProtocol is that of the streams over which pushes of small namespaces go directly
// from their origin to each member.
const DirectProtocol protocol.ID = "/syncd/direct/1.0.0"

// direct carries pushes directly. This node opens a line to each member that is connected,
// and members open inlets to it. Package push decides which pushes go that way; GossipSub
// carries the others.
type direct struct {
	mesh *Mesh

	mu     sync.Mutex // guards what follows, and is taken before those of the lines
	lines  map[peer.ID]*line
	inlets map[peer.ID]*inlet // the newest of each member
	// broken is how many streams to a member have failed or ended early, less those that
	// lasted; at most brokenLine.
	broken map[peer.ID]int
}

const (
	// linksPause is for how long changes of lines are gathered before members learn of them.
	linksPause = 200 * time.Millisecond
	// leastLinePause follows the end of a line; each that ends early doubles it, up to
	// mostLinePause. A line that has lasted for so long begins with the least again.
	leastLinePause = 250 * time.Millisecond
	mostLinePause  = time.Minute
	// brokenLine streams fail before no push waits for a member, in one to one and a half
	// minutes by the pauses. For so long it can keep a small namespace's pushes on the
	// mesh, which takes three times the bytes.
	brokenLine = 9
)

func newDirect(m *Mesh) *direct {
	return &direct{mesh: m, lines: map[peer.ID]*line{}, inlets: map[peer.ID]*inlet{}, broken: map[peer.ID]int{}}
}

// meet opens a line to a member that is connected, unless there is one. The host calls it
// for each that it sees.
func (d *direct) meet(id peer.ID) {
	if id == d.mesh.host.ID() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lines[id]; l != nil {
		machine.Wake(l.again)
		return
	}
	if !d.reachable(id) {
		return
	}
	l := newLine(id)
	d.lines[id] = l
	d.mesh.soon(func() { d.keep(l) })
}

// reachable reports whether a line to a member can be: over a connection without a bound
// of its bytes.
func (d *direct) reachable(id peer.ID) bool {
	h := d.mesh.host
	return h.Host.Network().Connectedness(id) == network.Connected && h.admits(id)
}

// keep opens a line, and again when it has ended, as long as the member is connected.
func (d *direct) keep(l *line) {
	pause := leastLinePause
	for d.mesh.ctx.Err() == nil {
		begun := time.Now()
		d.serve(l)
		lasted := time.Since(begun) > mostLinePause
		if d.ended(l, lasted) {
			return
		}
		if lasted {
			pause = leastLinePause
		}
		select {
		case <-time.After(pause/2 + jitter(pause)):
			pause = min(2*pause, mostLinePause)
		case <-l.again:
		case <-d.mesh.ctx.Done():
		}
	}
}

// ended notes the end of a line's stream, and forgets the line if its member is not
// connected any more.
func (d *direct) ended(l *line, lasted bool) (forgotten bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch n := d.broken[l.id]; {
	case lasted && n <= 1 || !d.mesh.cfg.Members.IsMember(l.id):
		delete(d.broken, l.id)
	case lasted:
		d.broken[l.id]--
	case n < brokenLine:
		d.broken[l.id]++
	}
	if d.reachable(l.id) {
		return false
	}
	delete(d.lines, l.id)
	return true
}

// serve runs a line until its stream ends.
func (d *direct) serve(l *line) {
	ctx, cancel := context.WithTimeout(d.mesh.ctx, d.mesh.cfg.DialTimeout)
	s, err := d.mesh.host.NewStream(ctx, l.id, DirectProtocol)
	cancel()
	if err != nil {
		return // it does not push, is leaving, or has no room for a stream
	}
	ctx, end := d.life(s)
	var writing sync.WaitGroup
	writing.Go(func() { l.write(ctx, s, d.mesh.cfg.IdleTimeout) })
	r := bufio.NewReader(s)
	for {
		t, err := wire.ReadTakes(r)
		if err != nil {
			break
		}
		anew, ok := l.hear(t)
		if !ok {
			break
		}
		if f := d.mesh.follower(topicOf(t.Topic)); anew && f != nil && f.serves(l.id) {
			digest := f.Set.Pushes().Digest()
			l.add(t.Topic, digest, digest.Direct())
		}
		d.changed()
	}
	end()
	writing.Wait()
	l.deaf()
	d.changed()
}

// life is that of a stream, which is reset at its end: when end is called, or the node closes.
func (d *direct) life(s network.Stream) (ctx context.Context, end func()) {
	ctx, end = context.WithCancel(d.mesh.ctx)
	context.AfterFunc(ctx, func() { s.Reset() })
	return ctx, end
}

// receive takes the pushes of a member, over an inlet. The host has found it to be one.
func (d *direct) receive(s network.Stream) {
	id := s.Conn().RemotePeer()
	leave, ok := d.mesh.cfg.Enter()
	if !ok {
		s.Reset()
		return
	}
	defer leave()
	in := &inlet{id: id, stream: s, said: map[wire.Topic][]node.ID{}, wake: make(chan struct{}, 1)}
	d.mu.Lock()
	former := d.inlets[id]
	d.inlets[id] = in
	d.mu.Unlock()
	if former != nil {
		former.stream.Reset()
	}
	var saying sync.WaitGroup
	ctx, end := d.life(s)
	saying.Go(func() { in.say(ctx, d) })
	d.read(s)
	end()
	saying.Wait()
	d.mu.Lock()
	if d.inlets[id] == in {
		delete(d.inlets, id)
	}
	d.mu.Unlock()
}

// read takes what arrives over an inlet. While what it brought waits for its commit,
// nothing more is read. So this node's disk holds back a writer that is faster, and the
// writer says that there is more than it could send.
func (d *direct) read(s network.Stream) {
	id := s.Conn().RemotePeer()
	r := bufio.NewReader(s)
	var topic wire.Topic
	for {
		m, err := wire.ReadDirect(r, &topic)
		if err != nil {
			return
		}
		f := d.mesh.follower(topicOf(topic))
		if f == nil || !f.serves(id) {
			continue
		}
		if !d.arrived(f, id, m) {
			return
		}
	}
}

// changed makes the inlets say anew which topics this node takes, and which lines it has.
func (d *direct) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, in := range d.inlets {
		machine.Wake(in.wake)
	}
}

// linesOf are the lines of a namespace. Those that are not open yet may be of members that
// the mesh does not reach.
func (d *direct) linesOf(topic wire.Topic) *push.Lines {
	all := &push.Lines{Taking: map[node.ID][]node.ID{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range d.lines {
		switch links, takes, ready := l.takes(topic); {
		case takes:
			all.Taking[node.ID(id)] = links
		case ready:
		case d.broken[id] < brokenLine:
			all.Opening = append(all.Opening, node.ID(id))
		default:
			all.Broken = append(all.Broken, node.ID(id))
		}
	}
	return all
}

// reached are the lines of a namespace. Of those that are not open (Opening, Broken) it
// has only those of members that have subscribed to its topic (mesh). The mesh takes no push
// to another one, which would keep it from those that have lines.
func (d *direct) reached(topic wire.Topic, mesh func() []peer.ID) *push.Lines {
	all := d.linesOf(topic)
	if len(all.Opening)+len(all.Broken) > 0 {
		subscribed := mesh()
		away := func(id node.ID) bool { return !slices.Contains(subscribed, peer.ID(id)) }
		all.Opening = slices.DeleteFunc(all.Opening, away)
		all.Broken = slices.DeleteFunc(all.Broken, away)
	}
	return all
}

// push sends a push to members, each over its line.
func (d *direct) push(topic wire.Topic, m *push.Push, to []node.ID) {
	if len(to) == 0 {
		return
	}
	data := m.Direct()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range to {
		if l := d.lines[peer.ID(id)]; l != nil {
			l.add(topic, m, data)
		}
	}
}

// inlet is a stream over which a member pushes to this node.
type inlet struct {
	id     peer.ID
	stream network.Stream
	said   map[wire.Topic][]node.ID // which topics, and with which lines; used by say only
	wake   chan struct{}
}

// say says which topics this node takes from the member, and again what changes.
func (in *inlet) say(ctx context.Context, d *direct) {
	for ready := false; ; ready = true {
		b := d.takes(in)
		if !ready {
			b = wire.AppendTakes(b, &wire.Takes{Kind: wire.TakesReady})
		}
		if len(b) > 0 {
			_ = in.stream.SetWriteDeadline(time.Now().Add(d.mesh.cfg.IdleTimeout)) // without it Write only fails later
			if _, err := in.stream.Write(b); err != nil {
				in.stream.Reset()
				return
			}
		}
		select {
		case <-in.wake:
		case <-ctx.Done():
			return
		}
		if machine.Sleep(ctx, linksPause) != nil {
			return
		}
	}
}

// takes is what has changed since it was said.
func (d *direct) takes(in *inlet) (b []byte) {
	now := map[wire.Topic][]node.ID{}
	for _, f := range d.mesh.followers() {
		if f.small.Load() && f.serves(in.id) {
			now[f.topic] = f.Set.Pushes().Links(d.linesOf(f.topic))
		}
	}
	for topic, links := range now {
		if before, said := in.said[topic]; said && slices.Equal(before, links) {
			continue
		}
		t := &wire.Takes{Kind: wire.TakesTopic, Topic: topic}
		for _, id := range links {
			t.Links = append(t.Links, []byte(id))
		}
		b = wire.AppendTakes(b, t)
	}
	for topic := range in.said {
		if _, taken := now[topic]; !taken {
			b = wire.AppendTakes(b, &wire.Takes{Kind: wire.TakesNoMore, Topic: topic})
		}
	}
	in.said = now
	return b
}

// arrived examines what has arrived directly, and hands it to what commits. It reports
// whether the stream is to go on.
func (d *direct) arrived(f *follower, from peer.ID, m []byte) bool {
	leave, ok := f.Enter()
	if !ok {
		return true
	}
	defer leave()
	a, verdict, err := f.Set.Arrived(node.ID(from), m, true)
	d.mesh.count(f, from, verdict, err)
	if verdict == push.Taken {
		select {
		case f.arrivals <- a:
		case <-f.ctx.Done():
		}
	}
	return verdict != push.Refused
}
