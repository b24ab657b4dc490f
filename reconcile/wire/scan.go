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
	// Apart and Whole are as in a RecordAnswer. A page comes from a whole host alone.
	Apart, Whole bool
	// More: further records follow behind the last one.
	More bool
	// Records are in full, tombstones and what has expired too, by key: BatchRecords at most.
	Records []dbadapter.Record
}

// Subject is SubjectScan; so is the next one.
func (*AskScan) Subject() Subject { return SubjectScan }

// Subject is SubjectScan.
func (*ScanAnswer) Subject() Subject { return SubjectScan }

// scanMore is a flag of ScanAnswer, besides routeSame and routeWhole.
const scanMore = 4

func (q *AskScan) appendQuestion(b []byte) []byte {
	b = appendUvarint(q.appendTo(b), uint64(q.Most))
	return appendBytes(appendBytes(b, q.Prefix), q.After)
}

func (a *ScanAnswer) appendAnswer(b []byte) []byte {
	flags := flagsOf(a.Apart, a.Whole)
	if a.More {
		flags |= scanMore
	}
	b = append(b, flags)
	for i := range a.Records {
		b = AppendPushed(b, &a.Records[i])
	}
	return b
}

func (p *parser) askScan() *AskScan {
	q := &AskScan{ShardRow: p.shardRow()}
	most := p.uvarint()
	if most > BatchBytes {
		p.fail("a page of %d bytes; at most %d are allowed", most, BatchBytes)
	}
	q.Most = uint32(most)
	q.Prefix, q.After = p.bytes(dbadapter.MaxKey, "a prefix"), p.bytes(dbadapter.MaxKey, "a key")
	return q
}

func (p *parser) scanAnswer() *ScanAnswer {
	flags, apart := p.answerFlags(scanMore)
	a := &ScanAnswer{Apart: apart, Whole: flags&routeWhole != 0, More: flags&scanMore != 0}
	if !a.Whole {
		if a.More {
			p.fail("unknown flags %#x", flags)
		}
		return a
	}
	if a.More {
		p.some()
	}
	for len(p.rest) > 0 && p.err == nil {
		if len(a.Records) == BatchRecords {
			p.fail("more than %d records in one message", BatchRecords)
			break
		}
		a.Records = append(a.Records, p.pushed())
	}
	return a
}
