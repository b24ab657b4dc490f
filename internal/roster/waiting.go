package roster

import (
	"container/list"
	"iter"
	"slices"
)

// waiting holds statements that name others which have not arrived. Those of admins and
// those of other authors have places of their own, and of each the oldest gives way. A
// flood of unknown authors costs a bound of memory and no admin's place. What it drops
// comes again with a later sync. A node that was away gets what admins have said since
// in any order, so that nearly all of it waits.
type waiting struct {
	missing  func(*entry) []Hash // which of those that it names are not in the set
	admins   *list.List          // of *held, the oldest first
	others   *list.List          // the same
	bytes    int                 // of the values by admins
	byHash   map[Hash]*list.Element
	byHead   map[Hash]map[Hash]*list.Element // by a missing head
	byAuthor map[ID]int                      // of the others
}

type held struct {
	*entry
	heads  []Hash // under which byHead has it: all that are missing where it claims, else one
	admin  bool
	speaks claim // what its author can claim for what it names
	claim  claim // what those that wait for it claim for it
}

// claim is what room a set makes for a statement that others wait for.
type claim uint8

const (
	claimNone    claim = iota
	claimOwn           // one of its own author waits for it, a member
	claimMember        // one of another author waits for it, which the author may make
	claimFounder       // one of the founder does
)

func newWaiting(missing func(*entry) []Hash) waiting {
	return waiting{
		missing: missing, admins: list.New(), others: list.New(), byHash: map[Hash]*list.Element{},
		byHead: map[Hash]map[Hash]*list.Element{}, byAuthor: map[ID]int{},
	}
}

// put holds a statement. speaks is what its author can claim.
func (w *waiting) put(e *entry, admin bool, speaks claim) {
	at := w.byHash[e.hash]
	if at == nil {
		at = w.hold(e, admin)
	}
	h := at.Value.(*held)
	h.speaks = max(h.speaks, speaks) // the author may be known as an admin by now
	w.raise(at)
}

func (w *waiting) hold(e *entry, admin bool) (at *list.Element) {
	e.past = nil
	h := &held{entry: e, admin: admin}
	if admin {
		for w.bytes += len(e.value); w.bytes > MaxWaitingBytes; {
			w.drop(w.admins.Front())
		}
		at = w.admins.PushBack(h)
	} else {
		w.makeRoom(e.Author)
		at = w.others.PushBack(h)
		w.byAuthor[e.Author]++
	}
	w.byHash[e.hash] = at
	w.await(at, w.missing(e)[:1])
	return at
}

// await notes for which statements one waits.
func (w *waiting) await(at *list.Element, heads []Hash) {
	h := at.Value.(*held)
	h.heads = heads
	for _, head := range heads {
		if w.byHead[head] == nil {
			w.byHead[head] = map[Hash]*list.Element{}
		}
		w.byHead[head][h.hash] = at
	}
}

// raise hands the claims of a statement, and those for it, down to all that it waits
// for.
func (w *waiting) raise(at *list.Element) {
	for stack := []*list.Element{at}; len(stack) > 0; {
		at, stack = stack[len(stack)-1], stack[:len(stack)-1]
		h := at.Value.(*held)
		h.claim = max(h.claim, w.claimOf(h.entry))
		if h.claim == claimNone && h.speaks == claimNone {
			continue
		}
		if len(h.heads) == 1 {
			w.await(at, w.missing(h.entry))
		}
		for _, head := range h.heads {
			below := w.byHash[head]
			if below != nil && below.Value.(*held).claim < w.claimOf(below.Value.(*held).entry) {
				stack = append(stack, below)
			}
		}
	}
}

// claimOf is what those that wait for a statement claim for it.
func (w *waiting) claimOf(e *entry) (most claim) {
	for _, at := range w.byHead[e.hash] {
		most = max(most, at.Value.(*held).claims(e.Author))
	}
	return most
}

// claims is what a statement that waits claims for one by an author that it names.
func (h *held) claims(author ID) claim {
	if h.Author == author {
		return max(h.claim, min(h.speaks, claimOwn))
	}
	return max(h.claim, h.speaks)
}

// all are the statements that wait.
func (w *waiting) all() iter.Seq[*held] {
	return func(yield func(*held) bool) {
		for _, l := range []*list.List{w.admins, w.others} {
			for at := l.Front(); at != nil; at = at.Next() {
				if !yield(at.Value.(*held)) {
					return
				}
			}
		}
	}
}

// makeRoom drops a statement where one more by an author that is no admin would be
// too many.
func (w *waiting) makeRoom(author ID) {
	if w.byAuthor[author] < MaxWaitingPerAuthor {
		if w.others.Len() >= MaxWaiting {
			w.drop(w.others.Front())
		}
		return
	}
	for at := w.others.Front(); at != nil; at = at.Next() {
		if at.Value.(*held).Author == author {
			w.drop(at)
			return
		}
	}
}

func (w *waiting) drop(at *list.Element) {
	h := at.Value.(*held)
	delete(w.byHash, h.hash)
	for _, head := range h.heads {
		if delete(w.byHead[head], h.hash); len(w.byHead[head]) == 0 {
			delete(w.byHead, head)
		}
	}
	if h.admin {
		w.admins.Remove(at)
		w.bytes -= len(h.value)
		return
	}
	w.others.Remove(at)
	if w.byAuthor[h.Author]--; w.byAuthor[h.Author] == 0 {
		delete(w.byAuthor, h.Author)
	}
}

// take gives what waits for a statement, by hash, and holds it no longer. By hash, a
// history that is played again leaves the same set.
func (w *waiting) take(head Hash) (freed []*entry) {
	for _, at := range w.byHead[head] {
		freed = append(freed, at.Value.(*held).entry)
		w.drop(at)
	}
	slices.SortFunc(freed, byHash)
	return freed
}
