package roster

import "container/list"

// waiting holds statements that name others which have not arrived. The oldest
// gives way: a flood of unknown authors costs a bound of memory, and what it
// drops comes again with the next sync.
type waiting struct {
	order    *list.List // of *held, the oldest first
	byHash   map[Hash]*list.Element
	byHead   map[Hash]map[Hash]*list.Element // by a missing head
	byAuthor map[ID]int
	wants    map[Hash]bool // named by what is being loaded
}

type held struct {
	*entry
	missing Hash
}

func newWaiting() waiting {
	return waiting{
		order: list.New(), byHash: map[Hash]*list.Element{}, byHead: map[Hash]map[Hash]*list.Element{},
		byAuthor: map[ID]int{}, wants: map[Hash]bool{},
	}
}

func (w *waiting) put(e *entry, missing Hash) {
	if w.byHash[e.hash] != nil {
		return
	}
	e.past = nil
	if w.byAuthor[e.Author] >= MaxWaitingPerAuthor {
		for at := w.order.Front(); at != nil; at = at.Next() {
			if at.Value.(*held).Author == e.Author {
				w.drop(at)
				break
			}
		}
	} else if w.order.Len() >= MaxWaiting {
		w.drop(w.order.Front())
	}
	at := w.order.PushBack(&held{e, missing})
	w.byHash[e.hash] = at
	if w.byHead[missing] == nil {
		w.byHead[missing] = map[Hash]*list.Element{}
	}
	w.byHead[missing][e.hash] = at
	w.byAuthor[e.Author]++
}

func (w *waiting) drop(at *list.Element) {
	h := w.order.Remove(at).(*held)
	delete(w.byHash, h.hash)
	if delete(w.byHead[h.missing], h.hash); len(w.byHead[h.missing]) == 0 {
		delete(w.byHead, h.missing)
	}
	if w.byAuthor[h.Author]--; w.byAuthor[h.Author] == 0 {
		delete(w.byAuthor, h.Author)
	}
}

// take gives what waits for a statement, and holds it no longer.
func (w *waiting) take(head Hash) (freed []*entry) {
	for _, at := range w.byHead[head] {
		freed = append(freed, at.Value.(*held).entry)
		w.drop(at)
	}
	return freed
}

// wanted reports whether a statement that waits names this one.
func (w *waiting) wanted(head Hash) bool { return w.wants[head] || len(w.byHead[head]) > 0 }

func (w *waiting) want(head Hash) { w.wants[head] = true }

func (w *waiting) forgetWants() { clear(w.wants) }
