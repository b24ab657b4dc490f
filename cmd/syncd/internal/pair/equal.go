package pair

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// Contents is what both sides were found to hold.
type Contents struct {
	// Equal: the same records, in full but for their signatures.
	Equal bool
	// Records and Bytes are node 1's: how many, and the bytes of their keys,
	// values, versions and signatures.
	Records int
	Bytes   int64
}

// Compare reads both sides in full, by no other means than a scan, so that it
// would see what a sketch or a digest overlooked.
func (p *Pair) Compare(ctx context.Context) (Contents, error) {
	return compare(p.scan(ctx, 0), p.scan(ctx, 1))
}

func (p *Pair) scan(ctx context.Context, i int) iter.Seq2[dbadapter.Record, error] {
	return p.NS[i].Scan(ctx, nil, peer.WithTombstones())
}

func compare(one, two iter.Seq2[dbadapter.Record, error]) (Contents, error) {
	next, stop := iter.Pull2(two)
	defer stop()
	c := Contents{Equal: true}
	for a, err := range one {
		if err != nil {
			return c, err
		}
		c.Records++
		c.Bytes += int64(len(a.Key) + len(a.Value) + dbadapter.VersionSize + len(a.Signature))
		b, err, ok := next()
		if err != nil {
			return c, err
		}
		if !ok || !same(&a, &b) {
			c.Equal = false
		}
	}
	_, err, more := next()
	if more {
		c.Equal = false
	}
	return c, err
}

func same(a, b *dbadapter.Record) bool {
	return bytes.Equal(a.Key, b.Key) && a.Version == b.Version && a.Deleted == b.Deleted && bytes.Equal(a.Value, b.Value) &&
		a.Expires == b.Expires && slices.Equal(a.Replaces, b.Replaces)
}
