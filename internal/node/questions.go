package node

import (
	"math"
	"time"
)

// The bounds of the questions that peers ask.
const (
	// MaxQuestions is how many questions of one peer are answered at once, most of which
	// wait for something; MaxQuestionsInAll of all peers. Each holds a stream and a
	// goroutine.
	MaxQuestions      = 8
	MaxQuestionsInAll = 128
	// questionRate is how many questions a second one peer may ask, and questionBurst how
	// many at once after a pause. One costs some 100 µs: a look-up and two proofs.
	questionRate  = 200
	questionBurst = 400
)

// questions counts the questions of peers and keeps them within their bounds. It is
// guarded by the lock of Sessions.
type questions struct {
	all int
	of  map[ID]*questioner
}

// questioner is a peer that asks. It has a bucket of tokens (the token bucket of RFC 2697,
// of one colour), so that what it may ask after a pause is bounded, too.
type questioner struct {
	open   int
	tokens float64
	at     time.Duration
}

// question takes a place for a question of a peer that is a member; their number bounds
// what is remembered. now is a time that no setting of a clock moves.
func (s *Sessions) question(remote ID, now time.Duration) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.asked
	one := q.of[remote]
	if one == nil {
		if q.of == nil {
			q.of = map[ID]*questioner{}
		}
		one = &questioner{tokens: questionBurst, at: now}
		q.of[remote] = one
	}
	one.tokens, one.at = math.Min(questionBurst, one.tokens+questionRate*(now-one.at).Seconds()), now
	if one.open >= MaxQuestions || q.all >= MaxQuestionsInAll || one.tokens < 1 {
		return nil, false
	}
	one.tokens--
	one.open++
	q.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.open--
		q.all--
	}, true
}
