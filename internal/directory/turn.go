package directory

import (
	"errors"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// ErrNoNews: what a host has answered to a poll is no news.
var ErrNoNews = errors.New("the answer to a poll is no news")

// Turn is what a node asks one host, one question after the other: what is new, while there is more of it,
// and then for sets that are missing, and after each block of these for what has happened meanwhile. One
// turn of a host is under way at a time.
type Turn struct {
	locator *Locator
	host    roster.ID
	waits   bool // the first poll, which is the first step, may wait at the host
	polls   bool // a poll is next
	over    bool
	steps   int

	asked Message // nil: nothing yet
	sent  time.Duration
	again bool
}

// Follow begins a turn of a host. wait: the first poll may wait there for news.
func (l *Locator) Follow(host roster.ID, wait bool) *Turn {
	return &Turn{locator: l, host: host, waits: wait, polls: true}
}

// Next is what to ask the host now, which Answered is told of; nil: the turn is over.
func (t *Turn) Next(now time.Duration) Message {
	if t.over || t.steps == MaxSteps {
		return nil
	}
	t.steps++
	t.sent = now
	if t.polls {
		poll := t.locator.Poll(t.host)
		poll.Wait = t.waits && t.steps == 1 && poll.Log != 0 && !poll.All
		t.asked = poll
		return poll
	}
	take := t.locator.Take(t.host, now)
	if take == nil {
		return nil
	}
	t.asked = take
	return take
}

// Answered takes in what the host has answered; nil: it has not, or does not tell of the set. The turn is
// over then, and after an error: the host has not said what an honest one says, which the Locator
// counts, or ErrNoNews.
func (t *Turn) Answered(answer Message, now time.Duration) (err error) {
	t.over = true
	switch asked := t.asked.(type) {
	case *Poll:
		news, ok := answer.(*News)
		if !ok {
			return ErrNoNews
		}
		if err := t.locator.News(t.host, asked, news, t.sent); err != nil {
			return err
		}
		t.again = t.again || asked.Wait && (len(news.Events) > 0 || now-t.sent >= MaxWait/2) || t.waits && asked.All && news.All
		t.polls = news.More
	case *Take:
		block, ok := answer.(*Block)
		if !ok {
			t.locator.TakeFailed(t.host, asked.Home)
			return nil
		}
		if err := t.locator.Block(t.host, asked, block, now); err != nil {
			return err
		}
		t.polls = true
	}
	t.over = false
	return nil
}

// Again reports whether the next turn may follow at once: a poll has waited, or has brought news, or
// could not wait, since it asked for all that the host says, as the first one does; what is new after
// that is told to the next one. Else the host answers without waiting.
func (t *Turn) Again() bool { return t.again }
