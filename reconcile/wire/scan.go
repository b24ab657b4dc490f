package wire

import "github.com/syncd-io/syncd/dbadapter"

// SubjectScan is a page of a shard's records, by key. It is a routed question.
const SubjectScan Subject = 7

// AskScan asks for the records of a shard whose keys begin with Prefix and are greater than
// After, the least keys first: a page. The last key of a page is what the next one is
// asked for behind, of this host or of another one. So nothing is kept for a scan.
type AskScan struct {
	ShardRow
	// Most is how many bytes the page's records may take, as they travel: BatchBytes at
	// most. One record comes in any case.
	Most          uint32
	Prefix, After []byte
}

// ScanAnswer is a page.
type ScanAnswer struct {
	// Whole is as in a RecordAnswer. A page is of a whole host alone.
	Whole bool
	// More: further records follow behind the last one.
	More bool
	// Records are in full, tombstones and what has expired too, by key: BatchRecords at most.
	Records []dbadapter.Record
}

// Subject is SubjectScan; so is the next one.
func (*AskScan) Subject() Subject { return SubjectScan }

// Subject is SubjectScan.
func (*ScanAnswer) Subject() Subject { return SubjectScan }

func (q *AskScan) question(c *codec) {
	q.fields(c)
	if uvarint(c, &q.Most); q.Most > BatchBytes {
		c.fail("a page of %d bytes; at most %d are allowed", q.Most, BatchBytes)
	}
	field(c, &q.Prefix, dbadapter.MaxKey, "a prefix")
	field(c, &q.After, dbadapter.MaxKey, "a key")
}

func (a *ScanAnswer) answer(c *codec) {
	c.host(&a.Whole, &a.More)
	if a.More && !a.Whole {
		c.fail("more of a page that there is not")
	}
	if !a.Whole {
		return
	}
	if a.More {
		c.some()
	}
	list(c, &a.Records, BatchRecords, "records", c.pushed)
}
