package plan

// The levels of requests in a namespace that is cut into shards. Without one a request asks for Quorum.
const (
	One    = "one"
	Quorum = "quorum"
	All    = "all"
)

var levels = []string{One, Quorum, All}
