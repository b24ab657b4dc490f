package route

import (
	"slices"
	"time"
)

// said is one thing that has happened in a read, as its twin remembers it.
type said struct {
	at     time.Duration
	peer   ID
	asked  bool
	answer *Answer
	busy   bool // and no answer, nor an error for good
}

// twin is a read that keeps all that has happened, and goes through it each time.
type twin struct {
	candidates []Candidate
	o          GetOptions
	log        []said
}

// last is the last thing that happened with a peer, and when it was asked first; nil: it was not asked.
func (w *twin) last(peer ID) (last *said, first time.Duration) {
	for i := range w.log {
		if w.log[i].peer != peer {
			continue
		}
		if last == nil {
			first = w.log[i].at
		}
		last = &w.log[i]
	}
	return last, first
}

func (w *twin) over(now time.Duration) bool {
	if now >= w.o.Deadline {
		return true
	}
	here := w.o.Here
	heard, settled, own := here != nil && here.Host, 0, here != nil && here.Host && here.Settled && here.Current
	if own {
		if settled = 1; !w.o.All && here.Record != nil {
			return true
		}
	}
	for _, s := range w.log {
		if s.answer != nil {
			if s.answer.Host && s.answer.Settled && s.answer.Current && !s.answer.OtherList {
				settled++
				if !w.o.All && (settled == 2 || s.answer.Record != nil) {
					return true
				}
			}
			if s.answer.Host || s.answer.Record != nil {
				heard = true
			}
		}
	}
	for _, c := range w.candidates {
		last, first := w.last(c.ID)
		if last == nil {
			return false
		}
		patient := !heard || w.o.All || settled == 1 && !own && !c.Former
		if last.asked && (patient || now < last.at+Overdue) || last.busy && (patient || now < first+Overdue) {
			return false
		}
	}
	return true
}

// result is the version found, whether it is sure, and whether there was an answer.
func (w *twin) result() (found int, sure, answered bool) {
	var settled, current []int
	own := false
	hear := func(a *Answer) {
		found = max(found, number(a.Record))
		if a.Host && a.Settled && !a.OtherList {
			if settled = append(settled, number(a.Record)); a.Current {
				current = append(current, number(a.Record))
			}
		}
	}
	if w.o.Here != nil {
		hear(w.o.Here)
		own, answered = len(current) > 0, w.o.Here.Host
	}
	for _, s := range w.log {
		if a := s.answer; a != nil {
			hear(a)
			answered = answered || a.Host || a.Record != nil
		}
	}
	complete := !w.o.Unheard && !slices.ContainsFunc(w.candidates, func(c Candidate) bool {
		last, _ := w.last(c.ID)
		return last == nil || last.answer == nil || last.answer.OtherList || c.Former && handedOver(last.answer)
	})
	if found > 0 && slices.ContainsFunc(append(w.log, said{answer: w.o.Here}), func(s said) bool {
		a := s.answer
		return a != nil && (a.Host && a.Settled || a.Holds) && a.Record == nil && int(a.Floor) >= found
	}) {
		return found, slices.Contains(current, found), answered
	}
	if complete {
		return found, slices.Contains(settled, found), answered
	}
	if sure = slices.Contains(current, found); found == 0 && len(current) == 1 && !own {
		sure = !slices.ContainsFunc(w.candidates, func(c Candidate) bool {
			last, _ := w.last(c.ID)
			return !c.Former && (last == nil || last.asked || last.busy)
		})
	}
	return found, sure, answered
}

// handedOver reports whether a former host holds the shard no more.
func handedOver(a *Answer) bool { return !a.Host && !a.Holds && a.Record == nil }

// beside is how many requests are open that are not overdue.
func (w *twin) beside(now time.Duration) (n int) {
	for _, c := range w.candidates {
		if last, _ := w.last(c.ID); last != nil && last.asked && now < last.at+Overdue {
			n++
		}
	}
	return n
}
