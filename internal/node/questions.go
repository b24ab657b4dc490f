package node

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Ask begins a question to a peer. The peer may answer only when what is asked for
// has happened, but waits no longer than patience. The driver carries the message
// and hands what comes back to Answered.
func (set *Set) Ask(remote ID, patience time.Duration, q wire.Question) (*wire.Ask, error) {
	return set.begin(remote, set.introduce(), patience, q)
}

// Ask begins a routed question to a member.
func (ns *Namespace) Ask(remote ID, q wire.Question) (*wire.Ask, error) {
	if err := ns.mayRoute(remote); err != nil {
		return nil, err
	}
	m := &wire.Ask{Greeting: ns.routedGreeting(), Question: q}
	ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveAsk(ns.proofs(), []byte(ns.node.ID), []byte(remote), m)
	return m, nil
}

// begin begins a question to a peer.
func (set *Set) begin(remote ID, g wire.Greeting, patience time.Duration, q wire.Question) (*wire.Ask, error) {
	if err := set.ns.MayCall(remote); err != nil {
		return nil, err
	}
	m := &wire.Ask{Greeting: g, Patience: uint64(min(max(0, patience.Milliseconds()), wire.MaxPatience)), Question: q}
	set.ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveAsk(set.Keys, []byte(set.ns.node.ID), []byte(remote), m)
	return m, nil
}

// Answered is the reply that a message of the peer is to an Ask, or the error that it
// stands for.
func (set *Set) Answered(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return reconcile.CheckReply(set.Keys, []byte(set.ns.node.ID), []byte(remote), ask, m)
}

// Answered is the reply that a message of the peer is to a routed question.
func (ns *Namespace) Answered(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return reconcile.CheckReply(ns.proofs(), []byte(ns.node.ID), []byte(remote), ask, m)
}

// proofs are what the proofs of routed questions are made with.
func (ns *Namespace) proofs() reconcile.Keys { return reconcile.Keys{Secret: ns.secret, ID: ns.id} }

// routedGreeting is what this node says of itself with a routed question or answer. It
// promises nothing, and so needs no lock.
func (ns *Namespace) routedGreeting() wire.Greeting {
	return wire.Greeting{List: ns.Members().Digest(), Incarnation: ns.incarnation, Time: uint64(ns.node.Now().UnixMilli())}
}

// introduce is what this node says of itself beside a question or an answer. It promises
// nothing about versions: no snapshot goes with it.
func (set *Set) introduce() wire.Greeting {
	defer set.ns.Hold().Release()
	return wire.Greeting{
		List: set.Lists(), Floor: set.gc.Greeted(),
		Incarnation: set.ns.incarnation, Time: uint64(set.ns.node.Now().UnixMilli()),
	}
}

// Asked is a question of a peer that is to be answered.
type Asked struct {
	Ask    *wire.Ask
	NS     *Namespace
	Set    *Set // that it is about; nil: it is a routed one
	Remote ID
	Done   func() // ends the question
}

// Asked decides upon a peer's question about a set. The error says why there will be no answer:
// ErrVersion, ErrDenied, ErrPaused or ErrBusy; reconcile.Refusal makes the message
// of it. A stranger, a peer that has not proved the secret, and one that asks for
// what is not there get the same answer. Otherwise Done must be called.
func (n *Node) Asked(remote ID, m *wire.Ask) (*Asked, error) {
	if m.Version != wire.Version {
		return nil, reconcile.ErrVersion
	}
	p := n.part(m.Namespace)
	if p == nil || p.isControl() {
		return nil, ErrDenied
	}
	return n.asked(&Asked{Ask: m, NS: p.ns, Set: p.set, Remote: remote})
}

// Routed decides upon a peer's routed question, as Asked does.
func (n *Node) Routed(remote ID, m *wire.Ask) (*Asked, error) {
	if m.Version != wire.Version {
		return nil, reconcile.ErrVersion
	}
	if !m.Question.Subject().Routed() {
		return nil, fmt.Errorf("%w: a routed question about %d", reconcile.ErrProtocol, m.Question.Subject())
	}
	ns := n.Namespace(m.Namespace)
	if ns == nil {
		return nil, ErrDenied
	}
	return n.asked(&Asked{Ask: m, NS: ns, Remote: remote})
}

func (n *Node) asked(a *Asked) (_ *Asked, err error) {
	if !a.NS.Admits(a.Remote) {
		return nil, ErrDenied
	}
	if err := reconcile.CheckAsk(a.keys(), []byte(a.Remote), []byte(n.ID), a.Ask); err != nil {
		return nil, err
	}
	if err := a.Allowed(); err != nil { // told only to a peer that has proved the secret
		return nil, err
	}
	var ok bool
	if a.Done, ok = n.Questions.Take(a.Remote, a.Ask.Question.Subject(), n.elapsed()); !ok {
		return nil, fmt.Errorf("%w: as many questions are being answered as may, of all peers or of this one", reconcile.ErrBusy)
	}
	return a, nil
}

// keys are what the proofs of the question and its answer are made with.
func (a *Asked) keys() reconcile.Keys {
	if a.Set == nil {
		return a.NS.proofs()
	}
	return a.Set.Keys
}

// Allowed says what forbids an answer to the peer now, or nil.
func (a *Asked) Allowed() error {
	paused := a.NS.PausedWith
	if a.Set == nil {
		paused = a.NS.peerPaused
	}
	switch {
	case !a.NS.Admits(a.Remote):
		return ErrDenied
	case paused(a.Remote) != nil:
		return reconcile.ErrPaused
	}
	return nil
}

// Patience is for how long the peer waits for what it asks for.
func (a *Asked) Patience() time.Duration { return time.Duration(a.Ask.Patience) * time.Millisecond }

// Reply is the message with an answer. floor, of a routed question, is up to when the host has
// collected, or takes no record.
func (a *Asked) Reply(answer wire.Answering, floor dbadapter.Timestamp) *wire.Reply {
	m := &wire.Reply{Subject: a.Ask.Question.Subject(), Answer: answer}
	if a.Set == nil {
		m.Greeting = a.NS.routedGreeting()
		m.Greeting.Floor = floor
	} else {
		m.Greeting = a.Set.introduce()
	}
	a.NS.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveReply(a.keys(), []byte(a.NS.node.ID), []byte(a.Remote), a.Ask, m)
	return m
}

// RestsWith is why a peer has declined a record, and for how long this node does
// not offer it again, in whole milliseconds. The time is 0 if it does with the next
// sync.
func (set *Set) RestsWith(remote ID, list roster.Digest, r *dbadapter.Record, digest dbadapter.Digest) (wire.Reason, time.Duration) {
	rule, rest := set.declined.Rests(remote, list, &dbadapter.Hashed{Record: *r, Digest: digest}, set.ns.node.Now(), set.ns.Members().Policy().MaxSkew)
	if rule == 0 {
		return 0, 0
	}
	return rule, min(rest, (wire.MaxRest-1)*time.Millisecond).Truncate(time.Millisecond) + time.Millisecond
}

// Declines is why this node would decline a record that a peer holds, as far as its
// head tells, or why it has declined this record before. It is 0 if this node would
// take the record. bucket is what is held under the index. theirs is the floor that
// the peer greets with.
func (set *Set) Declines(from ID, theirs dbadapter.Timestamp, r *dbadapter.Hashed, bucket []dbadapter.Hashed) wire.Reason {
	members := set.ns.Members()
	if _, why := set.examine(members, from, set.ns.node.Now(), &r.Record); why != nil {
		return why.Reason
	}
	var held *dbadapter.Hashed
	alive := 0
	for i := range bucket {
		if string(bucket[i].Key) == string(r.Key) {
			held = &bucket[i]
		}
		if !bucket[i].Deleted {
			alive++
		}
	}
	floor := set.Floor()
	follows := !members.Has(set.ns.node.ID, RoleWrite) && members.Has(from, RoleWrite)
	switch {
	case held == nil && watermark.KeepsOut(floor, r.Version.Clock, follows, theirs):
		return wire.ReasonFloor
	case held == nil && len(bucket) >= dbadapter.MaxBucketKeys, // as the store decides
		!r.Deleted && (held == nil || held.Deleted) && alive >= dbadapter.MaxBucket:
		return wire.ReasonFull
	}
	// What the head does not tell, such as a signature that does not fit.
	if reason := set.rejected.Rule(r); reason == wire.ReasonSignature {
		return reason
	}
	return 0
}

// askers are the questions of peers that wait for what they ask about. A commit wakes those
// that it may have settled, and no others: a hundred that wait cost other commits a look-up.
type askers struct {
	mu sync.Mutex // guards what follows
	// keys are those about a key, by its index; sums those about everything, by the sum
	// that they wait for.
	keys map[dbadapter.Index][]*waker
	sums map[dbadapter.Sum][]*waker
}

// waker is one that waits.
type waker struct{ wake func() }

// Wait has wake called after each commit that may have settled the question, until
// the caller calls stop. Locks of the namespace are held then, so wake must only
// leave a sign. Wait, then ask for the Answer: what is committed in between wakes.
func (a *Asked) Wait(wake func()) (stop func()) {
	w := &a.Set.askers
	switch q := a.Ask.Question.(type) {
	case *wire.AskKey:
		return waits(w, &w.keys, a.Set.Keys.Hasher.Index(q.Held.Key), wake)
	case *wire.AskSet:
		return waits(w, &w.sums, q.Sum, wake)
	}
	return func() {}
}

func waits[K comparable](w *askers, of *map[K][]*waker, k K, wake func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *of == nil {
		*of = map[K][]*waker{}
	}
	one := &waker{wake}
	(*of)[k] = append((*of)[k], one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := slices.DeleteFunc((*of)[k], func(o *waker) bool { return o == one })
		if (*of)[k] = left; len(left) == 0 {
			delete(*of, k)
		}
	}
}

// wakeAskers wakes those that a commit may have settled.
func (set *Set) wakeAskers(changes []dbadapter.Change) {
	w := &set.askers
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keys) > 0 {
		for i := range changes {
			for _, one := range w.keys[changes[i].Index] {
				one.wake()
			}
		}
	}
	if len(w.sums) > 0 {
		for _, one := range w.sums[set.Sum()] {
			one.wake()
		}
	}
}

// Waiting is how many questions of peers wait.
func (set *Set) Waiting() (n int) {
	w := &set.askers
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.keys {
		n += len(of)
	}
	for _, of := range w.sums {
		n += len(of)
	}
	return n
}
