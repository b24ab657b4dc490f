package wire

// The feed of a locator travels as questions and answers about its own messages, on the
// streams of routed questions. Who may ask, and what proves the answer, is the same.

// SubjectFeed is that of the feed.
const SubjectFeed Subject = 6

// MaxFeed is the greatest message of the feed in bytes.
const MaxFeed = 256 << 10

// AskFeed is a poll or a take of the feed, as package locator writes it.
type AskFeed struct{ Message []byte }

// FeedAnswer is the answer to it, the news or a page.
type FeedAnswer struct{ Message []byte }

// Subject is SubjectFeed.
func (*AskFeed) Subject() Subject { return SubjectFeed }

// Subject is SubjectFeed.
func (*FeedAnswer) Subject() Subject { return SubjectFeed }

func (q *AskFeed) question(c *codec) { orNone(c, &q.Message, MaxFeed, "a question about the feed") }
func (a *FeedAnswer) answer(c *codec) {
	orNone(c, &a.Message, MaxFeed, "an answer about the feed")
}
