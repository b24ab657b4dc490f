package syncing

import (
	"math"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The bounds of the questions that peers ask. Each that is answered or waits holds a stream
// and a goroutine, and a routed one a record or a frame.
const (
	// MaxQuestions is how many questions of one peer about a key, a set or a status
	// are answered at once; MaxQuestionsInAll of all peers. Most of them wait for
	// something.
	MaxQuestions      = 8
	MaxQuestionsInAll = 128
	// MaxRouted is how many routed ones of one peer are answered at once, MaxRoutedInAll of all peers.
	MaxRouted      = 8
	MaxRoutedInAll = 128
	// MaxFeeding is how many further questions of one peer are answered, about the
	// feed; MaxFeedingInAll of all peers. A peer that writes as much as it may must
	// go on to hear of keys. One that fetches sets must go on to write. An asker
	// has a poll and a page of a set to each host.
	MaxFeeding      = 2
	MaxFeedingInAll = 128

	// QuestionRate is how many questions of any kind one peer has answered a
	// second, and QuestionBurst how many at once after a pause. One costs some 100
	// µs of a processor: a look-up and two proofs. Each AnswerBytes of an answer
	// count as one more question, so a peer is given 32 MiB a second at the most.
	QuestionRate  = 2000
	QuestionBurst = 4000
	AnswerBytes   = 16 << 10
)

// Questions counts the questions of peers, by what they are about, and keeps them within
// their bounds. The zero value has none.
type Questions struct {
	mu      sync.Mutex // guards budgets
	budgets map[roster.ID]*budget
	asks    counted // about a key, a set or a status
	answers counted // routed ones but for those about the feed,
	feeds   counted // which are here
}

// budget is what a peer may ask for: a bucket of tokens (the token bucket of RFC
// 2697, of one colour). So what it may ask for after a pause is bounded, too. An
// answer may overdraw it.
type budget struct {
	tokens float64
	at     time.Duration
}

// Take takes a place for a question of a peer that is a member, and pays for it.
// Their number bounds what is remembered. now is a time that no setting of a clock
// moves.
func (q *Questions) Take(remote roster.ID, about wire.Subject, now time.Duration) (release func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.budgets[remote]
	if b == nil {
		if q.budgets == nil {
			q.budgets = map[roster.ID]*budget{}
		}
		b = &budget{QuestionBurst, now}
		q.budgets[remote] = b
	}
	b.tokens, b.at = math.Min(QuestionBurst, b.tokens+QuestionRate*(now-b.at).Seconds()), now
	if b.tokens < 1 {
		return nil, false
	}
	switch {
	case !about.Routed():
		release, ok = q.asks.take(remote, MaxQuestions, MaxQuestionsInAll)
	case about == wire.SubjectFeed:
		release, ok = q.feeds.take(remote, MaxFeeding, MaxFeedingInAll)
	default:
		release, ok = q.answers.take(remote, MaxRouted, MaxRoutedInAll)
	}
	if ok {
		b.tokens--
	}
	return release, ok
}

// Charge pays for the bytes of an answer to a routed question.
func (q *Questions) Charge(remote roster.ID, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.budgets[remote].tokens -= float64(bytes) / AnswerBytes
}
