package roster

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/syncd-io/syncd/dbadapter"
)

var histories = flag.Int("histories", 400, "how many random histories each test makes")

// quickSign and quickVerify stand in for Ed25519 where thousands of statements are
// signed: a hash of the key and the message.
func quickSign(n int) func([]byte) ([]byte, error) {
	key, _ := ids[n].PublicKey()
	return func(message []byte) ([]byte, error) {
		sum := sha512.Sum512(slices.Concat(key, message))
		return sum[:], nil
	}
}

func quickVerify(key ed25519.PublicKey, message, signature []byte) bool {
	sum := sha512.Sum512(slices.Concat(key, message))
	return bytes.Equal(sum[:], signature)
}

// ids are the ids of some nodes; the first is the founder's.
var ids = func() (ids [8]ID) {
	for n := range ids {
		ids[n] = idOf(n)
	}
	return ids
}()

func quickSet() *Set {
	return New(Config{Namespace: testNamespace, Creator: ids[0], Placement: testPlacement, Verify: quickVerify})
}

// random makes statements at random: honest ones of nodes that each have seen a
// part, and ones on heads chosen on purpose.
type random struct {
	*rand.Rand
	nodes  int
	values [][]byte
	all    *Set
	may    func(*Statement) bool // what the story lets happen
}

func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 10)), all: quickSet(), may: func(*Statement) bool { return true }}
	r.nodes = 3 + r.IntN(len(ids)-2)
	r.put(0, &Statement{Kind: Found, Author: ids[0], At: 1, Policy: &testPolicy, Placement: testPlacement})
	return r
}

func (r *random) put(author int, s *Statement) bool {
	value, err := s.Sign(testNamespace, quickSign(author))
	if err != nil || !r.may(s) {
		return false
	}
	r.values = append(r.values, value)
	status, err := r.all.Add(value)
	return err == nil && status == Added
}

// heads are some statements of the set: often the newest, at times old ones.
func (r *random) heads() (heads []Hash) {
	n := len(r.all.entries)
	for range 1 + r.IntN(3) {
		back := r.IntN(n)
		if r.IntN(3) > 0 {
			back = r.IntN(min(n, 6))
		}
		heads = append(heads, r.all.entries[n-1-back].hash)
	}
	if r.IntN(4) == 0 && len(r.all.Heads()) <= MaxHeads {
		heads = slices.Clone(r.all.Heads())
	}
	slices.SortFunc(heads, Hash.compare)
	return slices.Compact(heads)
}

func (r *random) expiry(at dbadapter.Timestamp) dbadapter.Timestamp {
	if r.IntN(4) > 0 {
		return 0
	}
	return at + 1 + dbadapter.Timestamp(r.IntN(20))
}

// step makes one statement by a node; most that could not be made are not kept.
func (r *random) step(author int) {
	for range 20 {
		s := &Statement{
			Kind: Grant, Author: ids[author], Subject: ids[r.IntN(r.nodes)], Heads: r.heads(),
			At: dbadapter.Timestamp(max(1, len(r.values)+r.IntN(12)-4)),
		}
		switch r.IntN(13) {
		case 12:
			s.Kind, s.Subject = Layout, ""
			s.Epoch, s.Table = r.all.epochSeen(s.Heads)+1, Table{byte(1 + r.IntN(4))}
			if r.IntN(8) == 0 {
				s.Epoch = uint64(1 + r.IntN(4))
			}
		case 0, 1:
			s.Kind = Remove
			if s.Subject == s.Author && r.IntN(6) > 0 {
				continue // too many leave
			}
		case 2, 3:
			s.Kind = Expire
			s.At += 20
		case 4:
			s.Kind = Lapse
		case 5:
			s.Kind, s.Subject = Return, s.Author
		case 6:
			if r.IntN(4) == 0 {
				s = &Statement{Kind: Found, Author: s.Author, At: s.At, Policy: &Policy{MaxSkew: time.Duration(1 + r.IntN(3))}}
				s.Placement = cbor.ByteString(testPlacement[:len(testPlacement)-r.IntN(2)])
				break
			}
			fallthrough
		default:
			s.Role = []Role{RoleRead, RoleWrite, RoleAdmin, RoleAdmin}[r.IntN(4)]
			s.Expires = r.expiry(s.At)
			if r.IntN(8) == 0 {
				s.Since = dbadapter.Timestamp(1 + r.IntN(len(r.values)+1))
			}
		}
		if r.put(author, s) || r.IntN(10) == 0 {
			return
		}
		if n := len(r.values); n > 0 && !r.all.Has(HashOf(r.values[n-1])) {
			r.values = r.values[:n-1] // refused: only some of these are kept
		}
	}
}

// grow makes statements by all nodes.
func (r *random) grow(n int) {
	for range n {
		r.step(r.IntN(r.nodes))
	}
}

// shuffled is a set that was given these values in some order.
func (r *random) shuffled(values [][]byte) *Set {
	s := quickSet()
	order := r.Perm(len(values))
	for range 2 {
		for _, i := range order {
			_, _ = s.Add(values[i]) // some are refused, by each node
		}
	}
	return s
}

func seeds(t *testing.T, run func(t *testing.T, seed uint64)) {
	t.Helper()
	for i := range *histories {
		seed := uint64(i)
		run(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d; again with -histories %d", seed, seed+1)
		}
	}
}

// text is all that lists of one digest agree in.
func (l *List) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x %+v %q %+v\n", l.Digest(), l.Policy(), l.Placement(), l.layout)
	for _, m := range l.Members() {
		fmt.Fprintf(&b, "%s %s writer %s since %d expires %d by %s grant %s lapsed %v epoch %d\n",
			m.ID, m.Role, m.Writer, m.Since, m.Expires, m.By, m.Grant, m.Lapsed, m.Epoch)
	}
	for _, f := range l.FormerMembers() {
		if f.Void {
			continue
		}
		fmt.Fprintf(&b, "%s removed by %s at %d: %s\n", f.ID, f.RemovedBy, f.At, HashOf(f.Statement))
	}
	for _, id := range ids {
		spans := slices.Clone(l.spans[id])
		slices.SortFunc(spans, func(a, b span) int { return int(a.from) - int(b.from) })
		for clock := range dbadapter.Timestamp(120) {
			b.WriteByte("-w"[map[bool]int{true: 1}[l.MayWrite(must(id.Writer()), clock)]])
		}
		for _, other := range ids {
			fmt.Fprintf(&b, " %v", l.Above(id, other))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The list is what the rules say, and the same in each order of arrival; nodes
// that each have seen a part agree once they have told one another the rest.
func TestListIsTheTwins(t *testing.T) {
	var members, voided, refused, layouts, resurfaced int
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(5 + r.IntN(40))
		w := newTwin(ids[0], r.values)
		p := w.whole()
		first := r.shuffled(r.values)
		if first.Len() != len(w.taken) {
			t.Fatalf("%d statements were taken, by the twin %d", first.Len(), len(w.taken))
		}
		for h := range w.taken {
			if !first.Has(h) {
				t.Fatalf("%s was not taken", h)
			}
		}
		compare(t, first.List(), p)
		members += len(first.List().Members())
		voided += len(first.List().Voided())
		refused += len(r.values) - first.Len()
		counts, _ := first.List().Layout()
		layouts += int(min(counts.Epoch, 1))
		for _, v := range first.List().Voided() {
			if v.Kind == Layout && v.Epoch > counts.Epoch {
				resurfaced++
				break
			}
		}
		for range 3 {
			if other := r.shuffled(r.values); other.List().text() != first.List().text() {
				t.Errorf("another order, another list:\n%s\n%s", first.List().text(), other.List().text())
			}
		}
		// Two halves, which then exchange what they hold.
		var left, right [][]byte
		for _, value := range r.values {
			if r.IntN(2) == 0 {
				left = append(left, value)
			} else {
				right = append(right, value)
			}
		}
		a, b := r.shuffled(left), r.shuffled(right)
		for _, value := range right {
			_, _ = a.Add(value)
		}
		b.Load(slices.Values(left))
		if a.List().text() != first.List().text() || b.List().text() != first.List().text() {
			t.Errorf("two halves do not agree after an exchange:\n%s\n%s\n%s", a.List().text(), b.List().text(), first.List().text())
		}
	})
	t.Logf("%d members, %d void statements, %d refused, %d layouts, %d of them beside a void one of a greater epoch", members, voided, refused, layouts, resurfaced)
	if members == 0 || voided == 0 || refused == 0 || layouts == 0 || resurfaced == 0 {
		t.Error("the histories do not reach what they are for")
	}
}

func compare(t *testing.T, l *List, p *part) {
	t.Helper()
	if got, want := l.Digest(), p.digest(); got != want {
		t.Errorf("digest %x, the twin's is %x", got, want)
	}
	if stated, _ := l.Layout(); stated.Statement != p.layout() {
		t.Errorf("layout %s of epoch %d; the twin says %s", stated.Statement, stated.Epoch, p.layout())
	}
	voided := map[Hash]bool{}
	for _, v := range l.Voided() {
		voided[v.Hash] = true
	}
	for h, s := range p.w.taken {
		if s.Kind != Found && p.stands(h) == voided[h] {
			t.Errorf("%s %s: void is %v", s.Kind, h, voided[h])
		}
	}
	for n, id := range ids {
		role, grant := p.role(id)
		m, _ := l.Member(id)
		if m.Role != role || role > 0 && grant != rootHash && m.Grant != grant {
			t.Errorf("node %d: %s by %s; the twin says %s by %s", n, m.Role, m.Grant, role, grant)
		}
		if role > 0 && (m.Lapsed != p.lapsed(id) || m.Epoch != p.epoch(id)) {
			t.Errorf("node %d: %+v; the twin says lapsed %v, epoch %d", n, m, p.lapsed(id), p.epoch(id))
		}
		for clock := range dbadapter.Timestamp(120) {
			if got, want := l.MayWrite(must(id.Writer()), clock), p.mayWrite(id, clock); got != want {
				t.Errorf("node %d: a version at %d: %v, by the twin %v", n, clock, got, want)
				break
			}
		}
	}
}
