package roster

import (
	"container/list"
	"slices"
)

// waiting holds statements that name others which have not arrived. Those of
// admins and those of other authors have places of their own, and of each the oldest
// gives way: a flood of unknown authors costs a bound of memory and no admin's
// place, and what it drops comes again with a later sync. A node that was away gets
// what admins have said since in any order, so that nearly all of it waits.
type waiting struct {
	admins   *list.List // of *held, the oldest first
	others   *list.List // the same
	bytes    int        // of the values by admins
	byHash   map[Hash]*list.Element
	byHead   map[Hash]map[Hash]*list.Element // by a missing head
	byAuthor map[ID]int                      // of the others
}

type held struct {
	*entry
	missing Hash
	admin   bool
}

func newWaiting() waiting {
	return waiting{
		admins: list.New(), others: list.New(), byHash: map[Hash]*list.Element{}, byHead: map[Hash]map[Hash]*list.Element{},
		byAuthor: map[ID]int{},
	}
}

func (w *waiting) put(e *entry, missing Hash, admin bool) {
	if w.byHash[e.hash] != nil {
		return
	}
	e.past = nil
	h := &held{e, missing, admin}
	var at *list.Element
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
	if w.byHead[missing] == nil {
		w.byHead[missing] = map[Hash]*list.Element{}
	}
	w.byHead[missing][e.hash] = at
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
	if delete(w.byHead[h.missing], h.hash); len(w.byHead[h.missing]) == 0 {
		delete(w.byHead, h.missing)
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

// take gives what waits for a statement, by hash, so that a history that is played
// again leaves the same set; and holds it no longer.
func (w *waiting) take(head Hash) (freed []*entry) {
	for _, at := range w.byHead[head] {
		freed = append(freed, at.Value.(*held).entry)
		w.drop(at)
	}
	slices.SortFunc(freed, byHash)
	return freed
}

// wanted reports whether a statement that waits names this one.
func (w *waiting) wanted(head Hash) bool { return len(w.byHead[head]) > 0 }
