package roster

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Config says which namespace a set belongs to.
type Config struct {
	Namespace dbadapter.NamespaceID // of the data
	Creator   ID                    // the node that made the namespace
	Placement string                // which the namespace's id is made of; empty: it is one shard
	Verify    Verify
}

// Set holds the statements of a namespace that a node has seen. It is for one
// goroutine at a time; the lists that it makes never change. Make it with New.
type Set struct {
	cfg      Config
	bounds   bounds
	entries  []*entry // each after those that it names
	byHash   map[Hash]int
	founds   []int
	subjects map[ID]*history
	own      map[ID][]int // by author: what the author says of itself alone, by hash
	count    count
	claimed  int // void statements that members' statements waited for, when some were dropped
	waiting  waiting
	released [][]byte
	dropped  [][]byte
	loading  bool
	resolved *resolution
	last     *List // the last that was resolved
}

// entry is a statement in the set, with all that depends on its past alone.
type entry struct {
	*Statement
	hash   Hash
	value  []byte
	number int    // its place in the set; −1: it is not in the set
	past   bits   // all that it reaches, without itself
	epoch  uint64 // the greatest of a layout that it is or reaches; 0: of none
	seats  []seat // of its author, in what it had seen
	grants []int  // roles of an author without seats, that speaks of itself alone
	above  bits   // of a grant of the role admin: the seats that may take this one
}

func newEntry(st *Statement, hash Hash, value []byte) *entry {
	return &entry{Statement: st, hash: hash, value: value, number: -1}
}

// history lists the statements about one member, by kind.
type history struct {
	admin, plain    []int // grants of the role admin, and of other roles
	enders          []int // removals, expiries and plain grants: what can end a role
	lapses, returns []int
}

// New is an empty set.
func New(cfg Config) *Set {
	s := &Set{
		cfg: cfg, bounds: standardBounds, byHash: map[Hash]int{}, subjects: map[ID]*history{}, own: map[ID][]int{},
		count: newCount(),
	}
	s.waiting = newWaiting(s.missing)
	return s
}

// Status is what became of a statement that was added.
type Status uint8

// What becomes of a statement, besides an error.
const (
	Added   Status = iota + 1 // it is in the set now
	Known                     // it was
	Waiting                   // it names statements that are not in the set; it is not either
)

// Add takes a statement. One whose heads are not all in the set waits, in a bounded
// buffer in memory. Offer it again when Released says that the set has grown, or with
// the next sync. The errors are ErrMalformed, ErrRefused (both for ever) and
// dbadapter.ErrLimit. The value is the set's from here on.
func (s *Set) Add(value []byte) (Status, error) {
	hash := HashOf(value)
	if _, known := s.byHash[hash]; known {
		return Known, nil
	}
	st, err := Parse(s.cfg.Namespace, value, s.cfg.Verify)
	if err != nil {
		return 0, err
	}
	return s.add(newEntry(st, hash, value))
}

// add takes an entry that is not in the set, and what had waited for it.
func (s *Set) add(e *entry) (Status, error) {
	if s.crowded() {
		s.Shed()
	}
	if len(s.missing(e)) > 0 {
		s.wait(e)
		return Waiting, nil
	}
	if err := s.take(e); err != nil {
		return 0, err
	}
	// What waited for this one may be taken too, or waits for another.
	for freed := s.waiting.take(e.hash); len(freed) > 0; freed = freed[1:] {
		next := freed[0]
		if len(s.missing(next)) > 0 {
			s.wait(next)
			continue
		}
		if s.take(next) == nil {
			s.released = append(s.released, next.value)
			freed = append(freed, s.waiting.take(next.hash)...)
		}
	}
	return Added, nil
}

// wait puts a statement aside until those that it names are here. What a member's
// statement names has room beyond the bounds: see room.
func (s *Set) wait(e *entry) {
	speaks := claimNone
	switch {
	case e.Author == s.cfg.Creator:
		speaks = claimFounder
	case s.last != nil && s.last.Has(e.Author, RoleRead) && (e.ofItself() || s.knownAdmin(e.Author)):
		speaks = claimMember
	}
	s.waiting.put(e, s.knownAdmin(e.Author), speaks)
}

// knownAdmin reports whether a node has been an admin, as far as the set tells.
func (s *Set) knownAdmin(id ID) bool {
	h := s.subjects[id]
	return id == s.cfg.Creator || h != nil && len(h.admin) > 0
}

// missing are the heads that are not in the set.
func (s *Set) missing(e *entry) (missing []Hash) {
	for _, h := range e.Heads {
		if _, ok := s.byHash[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing
}

// take examines a statement whose heads are in the set, and takes it.
func (s *Set) take(e *entry) error {
	s.see(e)
	if err := s.examine(e); err != nil {
		return fmt.Errorf("%w: %s by %s: %w", ErrRefused, e.Kind, e.Author, err)
	}
	if err := s.room(e); err != nil {
		return err
	}
	s.enter(e)
	return nil
}

// see notes what a statement reaches whose heads are in the set.
func (s *Set) see(e *entry) {
	e.past = nil
	for _, h := range e.Heads {
		i := s.byHash[h]
		e.past = e.past.union(s.entries[i].past).with(i)
	}
	e.epoch = max(e.Epoch, s.epochSeen(e.Heads))
}

// NextEpoch is that of the next layout: it is later than each one of the set, void ones too.
func (s *Set) NextEpoch() uint64 {
	var greatest uint64
	for _, e := range s.entries {
		greatest = max(greatest, e.Epoch)
	}
	return greatest + 1
}

// epochSeen is the greatest epoch of a layout that is or is reached by these, which are
// in the set.
func (s *Set) epochSeen(heads []Hash) (greatest uint64) {
	for _, h := range heads {
		greatest = max(greatest, s.entries[s.byHash[h]].epoch)
	}
	return greatest
}

// enter puts a statement that was examined into the set.
func (s *Set) enter(e *entry) {
	i := len(s.entries)
	e.number = i
	s.entries = append(s.entries, e)
	s.byHash[e.hash] = i
	s.resolved = nil
	if e.ofItself() {
		own := s.own[e.Author]
		at, _ := slices.BinarySearchFunc(own, e, func(j int, e *entry) int { return byHash(s.entries[j], e) })
		s.own[e.Author] = slices.Insert(own, at, i)
	}
	switch e.Kind {
	case Found:
		s.founds = append(s.founds, i)
		return
	case Layout:
		return
	}
	h := s.subjects[e.Subject]
	if h == nil {
		h = new(history)
		s.subjects[e.Subject] = h
	}
	switch {
	case e.Kind == Grant && e.Role == RoleAdmin:
		h.admin = append(h.admin, i)
	case e.Kind == Grant:
		h.plain = append(h.plain, i)
		h.enders = append(h.enders, i)
	case e.Kind == Remove || e.Kind == Expire:
		h.enders = append(h.enders, i)
	case e.Kind == Lapse:
		h.lapses = append(h.lapses, i)
	case e.Kind == Return:
		h.returns = append(h.returns, i)
	}
}

// Load takes the statements that a node has kept, or was given by its inviter, in any
// order. Those that cannot be taken are counted and left out. Of the bounds only that
// of the whole set applies: the others depend on what was void, or waited, when the
// statements arrived.
func (s *Set) Load(values iter.Seq[[]byte]) (left int) {
	s.loading = true
	defer func() { s.loading = false }()
	unread := map[Hash]*entry{}
	for value := range values {
		hash := HashOf(value)
		if s.Has(hash) || unread[hash] != nil {
			continue
		}
		st, err := Parse(s.cfg.Namespace, value, s.cfg.Verify)
		if err != nil {
			left++
			continue
		}
		unread[hash] = newEntry(st, hash, value)
	}
	hashes := slices.SortedFunc(maps.Keys(unread), Hash.compare)
	for _, h := range hashes {
		left += s.loadWithPast(h, unread)
	}
	return left
}

// loadWithPast takes a statement that is not read yet, after those that it names. It
// goes depth first, with a stack of its own, since a history can be deep. It counts
// those that cannot be taken.
func (s *Set) loadWithPast(h Hash, unread map[Hash]*entry) (left int) {
	for stack := []Hash{h}; len(stack) > 0; {
		top := stack[len(stack)-1]
		e := unread[top]
		if e == nil { // taken, refused, or not given
			stack = stack[:len(stack)-1]
			continue
		}
		before := len(stack)
		for _, head := range e.Heads {
			if unread[head] != nil {
				stack = append(stack, head)
			}
		}
		if len(stack) > before {
			continue
		}
		stack = stack[:before-1]
		delete(unread, top)
		if s.Has(top) { // it had waited
			continue
		}
		if status, err := s.add(e); err != nil || status == Waiting {
			left++
		}
	}
	return left
}

// Released are the statements that had waited and were taken since the last
// call, in the order in which they were.
func (s *Set) Released() [][]byte {
	released := s.released
	s.released = nil
	return released
}

// Len is how many statements are in the set.
func (s *Set) Len() int { return len(s.entries) }

// Has reports whether a statement is in the set.
func (s *Set) Has(h Hash) bool { _, ok := s.byHash[h]; return ok }

// Value is a statement in the set, or nil. It must not be changed.
func (s *Set) Value(h Hash) []byte {
	if i, ok := s.byHash[h]; ok {
		return s.entries[i].value
	}
	return nil
}

// At is when a statement of the set was made, by its author's clock; 0 if the set has not
// got it.
func (s *Set) At(h Hash) dbadapter.Timestamp {
	if i, ok := s.byHash[h]; ok {
		return s.entries[i].At
	}
	return 0
}

// Core are the statements that the list is a function of, MaxBytes of them at most,
// each after those that it names. They must not be changed.
func (s *Set) Core() [][]byte {
	core := s.resolve().core
	values := make([][]byte, len(core))
	for i, e := range core {
		values[i] = e.value
	}
	return values
}

// Values are the statements in the set by hash, and must not be changed.
func (s *Set) Values() iter.Seq2[Hash, []byte] {
	return func(yield func(Hash, []byte) bool) {
		order := make([]*entry, len(s.entries))
		copy(order, s.entries)
		slices.SortFunc(order, byHash)
		for _, e := range order {
			if !yield(e.hash, e.value) {
				return
			}
		}
	}
}

func byHash(a, b *entry) int { return bytes.Compare(a.hash[:], b.hash[:]) }
