package model

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// door is the one way in for records from a peer; it does what package peer's
// does, for members that may all write.
func (x *session) door(records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	p, n := x.process, x.process.node
	verdicts := make([]reconcile.Verdict, len(records))
	var writes []dbadapter.Write
	var places []int // of writes in verdicts
	for i := range records {
		reason, err := n.examine(&records[i].Record)
		if err != nil {
			verdicts[i].Reason = reason
			n.cluster.Watch.Refused(n.id, err)
			continue
		}
		writes = append(writes, dbadapter.Write{Record: records[i]})
		places = append(places, i)
	}
	for i := range writes {
		p.clock.Observe(hlc.Timestamp(writes[i].Record.Version.Clock))
	}
	for len(writes) > 0 {
		batch := dbadapter.OneBatch(writes)
		outcomes, err := p.store.Apply(context.Background(), writes[:batch])
		if err != nil {
			n.cluster.Watch.Refused(n.id, err)
			return nil, err
		}
		for i, o := range outcomes {
			verdicts[places[i]].Result = o.Result
			if o.Result == dbadapter.Applied {
				p.applied++
				x.applied++
				n.cluster.Watch.Observed(n.id, &writes[i].Record.Record)
			}
		}
		writes, places = writes[batch:], places[batch:]
	}
	n.crash.count() // the last moment at which a crash at the step apply strikes
	return verdicts, nil
}

// examine says why a record must stay outside.
func (n *Node) examine(r *dbadapter.Record) (wire.Reason, error) {
	c := n.cluster
	if err := r.Validate(); err != nil {
		return wire.ReasonLimit, err
	}
	if err := hlc.Check(r.Version.Clock.Time(), n.wall.now(), c.Skew); err != nil {
		return wire.ReasonClock, err
	}
	writer := c.writers[r.Version.Writer]
	if writer == nil {
		return wire.ReasonWriter, fmt.Errorf("the writer %s is not a member", r.Version.Writer)
	}
	if c.Signed && !c.signed(writer.id, r) {
		return wire.ReasonSignature, fmt.Errorf("the record %q is not signed by its writer", r.Key)
	}
	return 0, nil
}

// signedBytes is what a writer signs.
func (c *Cluster) signedBytes(r *dbadapter.Record) []byte {
	b := append([]byte("syncd testnet record\x00"), c.keys.ID[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Key)))
	b = append(b, r.Key...)
	b, _ = r.Version.AppendBinary(b) // never fails
	b = append(b, byte(boolean(r.Deleted)))
	return append(b, r.Value...)
}

func (c *Cluster) sign(node int, r *dbadapter.Record) []byte {
	return ed25519.Sign(keyOf(node), c.signedBytes(r))
}

// signed reports whether the node's key made the signature. A signature that
// fits does so at every node: it is checked once a run.
func (c *Cluster) signed(node int, r *dbadapter.Record) bool {
	message := c.signedBytes(r)
	sum := sha256.Sum256(append(append(binary.BigEndian.AppendUint32(nil, uint32(node)), r.Signature...), message...))
	if c.proven[sum] {
		return true
	}
	ok := ed25519.Verify(keyOf(node).Public().(ed25519.PublicKey), message, r.Signature)
	if ok {
		c.proven[sum] = true
	}
	return ok
}
