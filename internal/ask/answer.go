package ask

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Answer is the answer as of now, about what is durable here; settled says that the peer
// need not wait for another one. The error says what has come to forbid an answer.
func Answer(a *node.Asked) (m *wire.Reply, settled bool, err error) {
	if err := a.Allowed(); err != nil {
		return nil, true, err
	}
	var answer wire.Answering
	switch q := a.Ask.Question.(type) {
	case *wire.AskKey:
		answer, settled, err = answerKey(a.Set, a.Remote, &a.Ask.Greeting, q)
	case *wire.AskSet:
		answer, settled = answerSet(a.Set, q)
	case *wire.AskStatus:
		answer, settled = a.Set.Status(), true
	default:
		err = fmt.Errorf("%w: a question about %d", reconcile.ErrProtocol, q.Subject())
	}
	if err != nil {
		return nil, true, err
	}
	return a.Reply(answer, 0), settled, nil
}

// Serve answers once that can be done for good, or late. wait waits until wake was called, or it is late. Its error
// says that the peer has given up, or that the node closes.
func Serve(a *node.Asked, wake func(), wait func() (late bool, err error)) (*wire.Reply, error) {
	stop := a.Wait(wake)
	defer stop()
	for late := false; ; {
		reply, settled, err := Answer(a)
		if err != nil || settled || late {
			return reply, err
		}
		if late, err = wait(); err != nil {
			return nil, err
		}
	}
}

// answerSet tells what is held; a sum is known once its commit is durable.
func answerSet(set *node.Set, q *wire.AskSet) (*wire.SetAnswer, bool) {
	sum := set.Sum()
	return &wire.SetAnswer{Sum: sum}, sum == q.Sum
}

// answerKey tells what is held under a key: a snapshot has what is durable.
func answerKey(set *node.Set, remote node.ID, theirs *wire.Greeting, q *wire.AskKey) (*wire.KeyAnswer, bool, error) {
	index := set.Keys.Hasher.Index(q.Held.Key)
	bucket, err := bucketOf(set, index)
	if err != nil {
		return nil, false, err
	}
	held := under(bucket, q.Held.Key)
	answer := &wire.KeyAnswer{}
	if held != nil {
		answer.Held, answer.Digest = head(held), held.Digest
		if held.Version.Compare(q.Held.Version) > 0 {
			rule, rest := set.RestsWith(remote, theirs.List, &held.Record, held.Digest)
			answer.Declined, answer.Rest = rule, uint64(rest.Milliseconds())
		}
	}
	if !q.Held.Version.IsZero() && (held == nil || held.Version.Compare(q.Held.Version) < 0) {
		asked := dbadapter.Hashed{Record: q.Held, Index: index, Digest: q.Digest}
		answer.Declines = set.Declines(remote, theirs.Floor, &asked, bucket)
	}
	return answer, held != nil && held.Version.Compare(q.Held.Version) >= 0, nil
}

func bucketOf(set *node.Set, index dbadapter.Index) ([]dbadapter.Hashed, error) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return snap.Bucket(index)
}

// under is the record of a bucket that has the key, or nil.
func under(bucket []dbadapter.Hashed, key []byte) *dbadapter.Hashed {
	for i := range bucket {
		if string(bucket[i].Key) == string(key) {
			return &bucket[i]
		}
	}
	return nil
}

// head is a record without its value.
func head(r *dbadapter.Hashed) dbadapter.Record {
	h := r.Record
	h.Value = nil
	return h
}
