package plan

// Finding is what a read of a key comes to, as "get 2 key7 expect nowhere" says it.
type Finding string

// The findings.
const (
	// FoundRecord: a record.
	FoundRecord Finding = "record"
	// FoundNothing: nothing; hosts were asked.
	FoundNothing Finding = "nothing"
	// FoundNowhere: nothing, by the locator; no node was asked.
	FoundNowhere Finding = "nowhere"
	// FoundShort: too few hosts have answered.
	FoundShort Finding = "short"
	// FoundLost: the record is there, and no host has its value.
	FoundLost Finding = "lost"
)

// Findings lists all of them.
func Findings() []Finding {
	return []Finding{FoundRecord, FoundNothing, FoundNowhere, FoundShort, FoundLost}
}
