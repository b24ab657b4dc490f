package roster

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Member is a node that the list gives a role.
type Member struct {
	ID      ID
	Role    Role
	Writer  dbadapter.WriterID  // under which versions name the node
	Since   dbadapter.Timestamp // of the grant in force
	Expires dbadapter.Timestamp // the last instant of the role; 0 never
	Grant   Hash                // in force; the founder's is the founding statement
	By      ID                  // the author of the grant
	Lapsed  bool                // other members do not wait for it
	Epoch   int                 // how many removals, expiries and lapses of it stand
}

// FormerMember is a node that had a role and has lost it.
type FormerMember struct {
	ID        ID
	RemovedBy ID
	At        dbadapter.Timestamp
	Statement []byte // that took the role: it must not be changed
	// Void: its grants do not count, since Statement took their author's authority.
	// That is told to the node; another node with the same digest need not know it.
	Void bool
}

// VoidStatement is a statement in the set that does not count: its author had
// lost its authority to a concurrent statement.
type VoidStatement struct {
	*Statement
	Hash Hash
}

// StatedLayout is the layout that counts: of those that stand the one of the greatest
// epoch; of several, the greatest hash.
type StatedLayout struct {
	Epoch     uint64
	Table     Table // travels beside the statements
	Statement Hash
	By        ID
	At        dbadapter.Timestamp
}

// List is what a set of statements says. It never changes; slices that it gives
// must not be changed.
type List struct {
	digest  Digest
	policy  Policy
	members []Member

	placement string
	layout    StatedLayout
	overtaken bool // by a void layout
	gone      [8]byte
	active    []Member
	byID      map[ID]int
	writers   map[dbadapter.WriterID]ID // of all that ever wrote
	spans     map[ID][]span
	former    map[ID]FormerMember
	voided    []VoidStatement
	seats     map[ID][]seat
	above     map[seat]bits
	from      map[ID][]seat // by which the grant was given to a member that is no admin
	links     map[seat]link // the seats in seats and from, and those above them
}

// Digest stands for a list in greetings: equal digests, equal lists.
type Digest [16]byte

// UnmarshalCBOR takes a byte string of its length, and nothing else.
func (d *Digest) UnmarshalCBOR(b []byte) error {
	octets, err := ByteString(b)
	if err != nil || len(octets) != len(d) {
		return fmt.Errorf("a digest of %d bytes", len(octets))
	}
	*d = Digest(octets)
	return nil
}

// Digest are 16 bytes of the SHA-256 of the hashes, sorted, of the statements
// that stand and of those that these reach.
func (l *List) Digest() Digest { return l.digest }

// Policy is what the members have agreed on.
func (l *List) Policy() Policy { return l.policy }

// Placement is how the namespace is cut into shards, in the bytes of package placement;
// empty: it is one shard.
func (l *List) Placement() string { return l.placement }

// Layout is the layout that counts; false: none stands.
func (l *List) Layout() (StatedLayout, bool) { return l.layout, l.layout.Epoch > 0 }

// Overtaken reports whether a layout that is void is later than the one that counts. Nodes
// that have heard of it before it was void may go by it.
func (l *List) Overtaken() bool { return l.overtaken }

// Gone is a digest of which nodes were removed or have lapsed, and how often.
func (l *List) Gone() [8]byte { return l.gone }

func (l *List) digestGone() [8]byte {
	sum := sha256.New()
	for _, m := range l.members {
		if m.Epoch > 0 || m.Lapsed {
			fmt.Fprintf(sum, "%d %t %s ", m.Epoch, m.Lapsed, m.ID)
		}
	}
	for _, f := range l.FormerMembers() {
		hash := HashOf(f.Statement)
		sum.Write(hash[:])
	}
	return [8]byte(sum.Sum(nil))
}

// Members are the members by id.
func (l *List) Members() []Member { return l.members }

// Active are the members that have not lapsed, by id.
func (l *List) Active() []Member { return l.active }

// Member is the member of an id.
func (l *List) Member(id ID) (Member, bool) {
	i, ok := l.byID[id]
	if !ok {
		return Member{}, false
	}
	return l.members[i], true
}

// Role is a node's role; 0 for a node that is not a member.
func (l *List) Role(id ID) Role {
	m, _ := l.Member(id)
	return m.Role
}

// Has reports whether a node has at least a role.
func (l *List) Has(id ID, role Role) bool { return l.Role(id) >= role }

// Epoch is how often a member was interrupted. It counts the removals, expiries and
// lapses of it that stand. 0 for a node that is not a member.
func (l *List) Epoch(id ID) int {
	m, _ := l.Member(id)
	return m.Epoch
}

// Lapsed reports whether the other members do not wait for a member.
func (l *List) Lapsed(id ID) bool {
	m, _ := l.Member(id)
	return m.Lapsed
}

// ByWriter is the node, a member now or before, that versions name so. Of two
// nodes with one writer id it is the one with the lower peer id.
func (l *List) ByWriter(w dbadapter.WriterID) (ID, bool) {
	id, ok := l.writers[w]
	return id, ok
}

// MayWrite reports whether a version of the writer at that clock counts: it had
// the role write or admin then.
func (l *List) MayWrite(w dbadapter.WriterID, clock dbadapter.Timestamp) bool {
	return slices.ContainsFunc(l.spans[l.writers[w]], func(s span) bool { return s.from <= clock && clock <= s.to })
}

// WritesFrom is the least clock, of this one and later ones, at which a version of the writer
// counts; false: there is none.
func (l *List) WritesFrom(w dbadapter.WriterID, clock dbadapter.Timestamp) (least dbadapter.Timestamp, ok bool) {
	for _, s := range l.spans[l.writers[w]] {
		if from := max(s.from, clock); from <= s.to && (!ok || from < least) {
			least, ok = from, true
		}
	}
	return least, ok
}

// Right is the first clock of the time in which a node's versions count to the end without a
// break, or 1. 0: it may not write. It is later than before where the node has lost the right
// in between. For the times of two grants with a loss between them do not overlap.
func (l *List) Right(id ID) (since dbadapter.Timestamp) {
	if !l.Has(id, RoleWrite) {
		return 0
	}
	spans := slices.SortedFunc(slices.Values(l.spans[id]), func(a, b span) int { return cmp.Compare(b.to, a.to) })
	since = math.MaxUint64
	for i, s := range spans {
		if i > 0 && s.to < since {
			break
		}
		since = min(since, s.from)
	}
	return max(since, 1)
}

// Former is the node that had a role and lost it.
func (l *List) Former(id ID) (FormerMember, bool) {
	f, ok := l.former[id]
	return f, ok
}

// FormerMembers are the nodes that had a role and lost it, by id.
func (l *List) FormerMembers() []FormerMember {
	all := make([]FormerMember, 0, len(l.former))
	for _, f := range l.former {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b FormerMember) int { return compareIDs(a.ID, b.ID) })
	return all
}

// Voided are the statements that do not count, by hash: for the admins to see.
func (l *List) Voided() []VoidStatement { return l.voided }

// Above reports whether an admin may remove or demote a member. It may if it is the
// member itself, or an admin above all that makes the member an admin. A member that is
// no admin is below each admin.
func (l *List) Above(admin, member ID) bool {
	if admin == member {
		return l.Has(member, RoleRead)
	}
	if !l.Has(admin, RoleAdmin) || !l.Has(member, RoleRead) {
		return false
	}
	for _, t := range l.seats[member] {
		if !slices.ContainsFunc(l.seats[admin], func(u seat) bool { return l.above[t].has(int(u)) }) {
			return false
		}
	}
	return true
}
