package wire

import "github.com/syncd-io/syncd/dbadapter"

// The routed questions about values that are bodies (package bodies).
const (
	// SubjectBody is a key's record together with its value.
	SubjectBody Subject = 10
	// SubjectNames is which bodies a peer's records name.
	SubjectNames Subject = 11
)

// AskBody asks a host for a key's record, as far as it knows it in the shard. It asks for the
// body that the record names, too, if that is in the shard.
type AskBody struct {
	ShardRow
	Key []byte
}

// BodyAnswer is what the host has.
type BodyAnswer struct {
	Whole bool // as in a RecordAnswer
	// Record is what the shard holds under the key, or else the one that the host was given as a hint; nil: neither.
	Record *dbadapter.Record
	// Value is that of the body.
	Value []byte
}

// AskNames asks a member, host or not, which bodies its records of a shard name, and its kept log of that.
type AskNames struct {
	ShardRow
	// Names are at least one, and BatchRecords at most.
	Names []BodyName
}

// BodyName names the body of a key's value.
type BodyName struct {
	Salt [16]byte
	Key  []byte
}

// NamesAnswer says of each body, in order, whether a record names it.
type NamesAnswer struct{ Named []bool }

// Subject is SubjectBody; so is the next one.
func (*AskBody) Subject() Subject { return SubjectBody }

// Subject is SubjectBody.
func (*BodyAnswer) Subject() Subject { return SubjectBody }

// Subject is SubjectNames; so is the next one.
func (*AskNames) Subject() Subject { return SubjectNames }

// Subject is SubjectNames.
func (*NamesAnswer) Subject() Subject { return SubjectNames }

func (q *AskBody) question(c *codec) {
	q.fields(c)
	c.key(&q.Key)
}

func (a *BodyAnswer) answer(c *codec) {
	record := a.Record != nil
	if c.host(&a.Whole, &record); !record {
		return
	}
	c.pushed(made(c, &a.Record))
	field(c, &a.Value, dbadapter.MaxValue, "a value")
}

func (q *AskNames) question(c *codec) {
	q.fields(c)
	c.some()
	list(c, &q.Names, BatchRecords, "names", func(n *BodyName) {
		c.array(n.Salt[:])
		c.key(&n.Key)
	})
}

func (a *NamesAnswer) answer(c *codec) {
	c.host(nil)
	c.some()
	list(c, &a.Named, BatchRecords, "answers", c.bool)
}
