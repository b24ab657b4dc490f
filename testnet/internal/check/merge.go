package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// The reference merge: what a set of nodes must hold after all events that are
// known of them. It specifies the merge in a few lines, and shares no code with
// the code under test.

// stamp is what the merge knows of a write of a key.
type stamp struct {
	version dbadapter.Version
	deleted bool
	// value is the SHA-256 of what a user reads. content is that of the record. It covers one
	// byte, 1 for a deletion and 0 for a value, and the record's bytes, which by placement
	// writer may be a pointer to the value. Zero: it is not known.
	value, content [32]byte
	// rest is expiry and what it replaces; untold for an acknowledged write that
	// has not been observed, since an answer tells only the version.
	rest string
}

// untold is the rest of no record: that is a multiple of eight bytes.
const untold = "?"

// stampOf reads a record.
func stampOf(r *dbadapter.Record) stamp {
	rest := make([]byte, 8)
	binary.BigEndian.PutUint64(rest, uint64(r.Expires))
	for _, p := range r.Replaces {
		rest = binary.BigEndian.AppendUint64(rest, uint64(p.Writer))
		rest = binary.BigEndian.AppendUint64(rest, uint64(p.Clock))
	}
	return stamp{r.Version, r.Deleted, valueOf(r), contentOf(r.Deleted, r.Value), string(rest)}
}

// expires reports whether a stamp that is told in full is that of a record that
// expires.
func (a stamp) expires() bool {
	return a.rest != untold && a.rest[:8] != "\x00\x00\x00\x00\x00\x00\x00\x00"
}

// expiry is when it expires; only of one that does.
func (a stamp) expiry() dbadapter.Timestamp {
	return dbadapter.Timestamp(binary.BigEndian.Uint64([]byte(a.rest[:8])))
}

// sameExpiry reports whether two stamps can have one expiry.
func (a stamp) sameExpiry(b stamp) bool {
	return a.rest == untold || b.rest == untold || a.rest[:8] == b.rest[:8]
}

// alike reports whether two stamps can be those of one record.
func (a stamp) alike(b stamp) bool {
	if a.rest == untold || b.rest == untold {
		a.rest, b.rest = untold, untold
	}
	if a.value == ([32]byte{}) || b.value == ([32]byte{}) {
		a.value, b.value = [32]byte{}, [32]byte{}
	}
	if a.content == ([32]byte{}) || b.content == ([32]byte{}) {
		a.content, b.content = [32]byte{}, [32]byte{}
	}
	return a == b
}

func contentOf(deleted bool, value []byte) [32]byte {
	first := byte(0)
	if deleted {
		first = 1
	}
	return sha256.Sum256(append([]byte{first}, value...))
}

// beats reports whether a wins over b where both are writes of one key. The later clock
// wins; of equal clocks the greater writer; of one writer the greater incarnation. Of
// one version (imports of differing data that bear the same date) the greater content
// wins, then the later expiry, then the greater list of what it replaces.
func (a stamp) beats(b stamp) bool {
	v, w := a.version, b.version
	if v.Clock != w.Clock {
		return v.Clock > w.Clock
	}
	if v.Writer != w.Writer {
		return v.Writer > w.Writer
	}
	if v.Incarnation != w.Incarnation {
		return v.Incarnation > w.Incarnation
	}
	if none := [32]byte{}; a.content != b.content && a.content != none && b.content != none {
		return bytes.Compare(a.content[:], b.content[:]) > 0
	}
	return a.rest != untold && b.rest != untold && a.rest > b.rest
}

// String is how a stamp is named in a verdict.
func (a stamp) String() string {
	what := "a value"
	if a.deleted {
		what = "a deletion"
	}
	return fmt.Sprintf("%s (version %s, content %x)", what, a.version, a.content[:4])
}

// broken is the rule that is broken where a node should hold a write of a key, or a
// greater one, and holds s: resurrect, if that was deleted and s is alive, or else the
// rule that is named. It is empty if none is.
func (a stamp) broken(s stamp, rule Rule) Rule {
	switch {
	case !a.beats(s):
		return ""
	case a.deleted && !s.deleted:
		return Resurrect
	}
	return rule
}

// greatest is the greatest write of each key.
type greatest map[string]stamp

// stamps are the greatest of some records.
func stamps(dumps ...[]dbadapter.Record) greatest {
	g := greatest{}
	for _, dump := range dumps {
		for i := range dump {
			g.raise(string(dump[i].Key), stampOf(&dump[i]))
		}
	}
	return g
}

// raise notes a write.
func (g greatest) raise(key string, s stamp) {
	if old, ok := g[key]; !ok || s.beats(old) {
		g[key] = s
	}
}

// covers reports whether a write is there, or a greater one of its key.
func (g greatest) covers(key string, s stamp) bool {
	old, ok := g[key]
	return ok && !s.beats(old)
}

// reference is, for each node, what it is known to have held since its disk was last
// replaced. It must still hold that, or something greater.
type reference map[int]greatest

// raise notes that the node held s.
func (r reference) raise(node int, key string, s stamp) {
	if r[node] == nil {
		r[node] = greatest{}
	}
	r[node].raise(key, s)
}

// winner is the greatest write of a key, and a node that held it.
type winner struct {
	stamp
	node int
}

// merge is what nodes that reach each other must all come to hold.
func (r reference) merge(nodes []int) map[string]winner {
	merged := map[string]winner{}
	for _, node := range nodes {
		for key, s := range r[node] {
			if w, ok := merged[key]; !ok || s.beats(w.stamp) {
				merged[key] = winner{s, node}
			}
		}
	}
	return merged
}
