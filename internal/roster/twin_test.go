package roster

import (
	"bytes"
	"slices"
)

// twin is the rules of docs/MEMBERS.md written down as they stand there, with
// maps, and no care for speed.
type twin struct {
	creator ID
	taken   map[Hash]*Statement
	value   map[Hash][]byte
	past    map[Hash]map[Hash]bool
	seats   map[Hash][]Hash // of each statement's author; the zero hash is the founder's
	grants  map[Hash][]Hash // of an author without seats that speaks of itself alone
}

var rootHash Hash

// newTwin takes what can be taken of these values.
func newTwin(creator ID, all [][]byte) *twin {
	w := &twin{creator, map[Hash]*Statement{}, map[Hash][]byte{}, map[Hash]map[Hash]bool{}, map[Hash][]Hash{}, map[Hash][]Hash{}}
	for grown := true; grown; {
		grown = false
	next:
		for _, value := range all {
			h := HashOf(value)
			s, err := Parse(testNamespace, value, quickVerify)
			if err != nil || w.taken[h] != nil {
				continue
			}
			past := map[Hash]bool{}
			for _, head := range s.Heads {
				if w.taken[head] == nil {
					continue next
				}
				past[head] = true
				for p := range w.past[head] {
					past[p] = true
				}
			}
			if seats, ok := w.valid(s, past); ok {
				w.taken[h], w.value[h], w.past[h], w.seats[h] = s, value, past, seats
				if s.ofItself() && len(seats) == 0 {
					w.grants[h] = (&part{w: w, in: past}).plainOf(s.Author)
				}
				grown = true
			}
		}
	}
	return w
}

// valid says whether a statement may be made by one that has seen past, and by
// which seats.
func (w *twin) valid(s *Statement, past map[Hash]bool) ([]Hash, bool) {
	p := &part{w: w, in: past}
	if s.Kind == Found {
		return nil, s.Author == w.creator && s.Placement == testPlacement
	}
	role, _ := p.role(s.Subject)
	if s.Author == s.Subject && s.Kind == Remove {
		return p.seatsOf(s.Author), role > 0
	}
	if s.Kind == Return {
		return p.seatsOf(s.Author), role > 0 && p.lapsed(s.Author)
	}
	var by []Hash
	for _, t := range p.seatsOf(s.Author) {
		if t == rootHash || w.taken[t].Expires == 0 || w.taken[t].Expires >= s.At {
			by = append(by, t)
		}
	}
	if len(by) == 0 {
		return nil, false
	}
	if s.Kind == Layout {
		greatest := uint64(0)
		for h := range past {
			greatest = max(greatest, w.taken[h].Epoch)
		}
		return by, s.Epoch > greatest && s.Epoch <= greatest+1<<20
	}
	held := p.seatsOf(s.Subject)
	below := 0 // seats of the subject that the author may take
	expired := 0
	for _, t := range held {
		if s.Author == s.Subject || meet(by, w.above(t)) {
			below++
			if t != rootHash && w.taken[t].Expires != 0 && w.taken[t].Expires <= s.At {
				expired++
			}
		}
	}
	switch s.Kind {
	case Grant:
		return by, len(held) == 0 || below > 0 || s.Role == RoleAdmin && len(held) < maxSeats
	case Remove:
		return by, role > 0 && (len(held) == 0 || below > 0)
	case Expire:
		for _, g := range p.plainOf(s.Subject) {
			if e := w.taken[g].Expires; e != 0 && e <= s.At {
				expired++
			}
		}
		return by, expired > 0
	default:
		return by, role > 0 && !p.lapsed(s.Subject)
	}
}

func meet(a []Hash, b map[Hash]bool) bool {
	for _, h := range a {
		if b[h] {
			return true
		}
	}
	return false
}

// above: the seats by which the grant was made, and what is above each of these.
func (w *twin) above(t Hash) map[Hash]bool {
	up := map[Hash]bool{}
	if t == rootHash {
		return up
	}
	for candidate := range w.above(w.seats[t][0]) {
		inAll := true
		for _, u := range w.seats[t] {
			inAll = inAll && w.above(u)[candidate]
		}
		if inAll {
			up[candidate] = true
		}
	}
	for _, u := range w.seats[t] {
		up[u] = true
	}
	return up
}

func (w *twin) after(a, b Hash) bool { return w.past[a][b] }
func (w *twin) apart(a, b Hash) bool { return a != b && !w.past[a][b] && !w.past[b][a] }

func (w *twin) holder(t Hash) ID {
	if t == rootHash {
		return w.creator
	}
	return w.taken[t].Subject
}

// part is some of the statements, with all that these reach.
type part struct {
	w    *twin
	in   map[Hash]bool
	memo map[[2]Hash]int
}

func (w *twin) whole() *part {
	p := &part{w: w, in: map[Hash]bool{}}
	for h := range w.taken {
		p.in[h] = true
	}
	return p
}

func (p *part) stands(h Hash) bool {
	s := p.w.taken[h]
	if s.Kind == Found {
		return true
	}
	if s.ofItself() {
		if !p.among(h) {
			return false
		}
		if len(p.w.seats[h]) == 0 {
			return p.roleStands(h)
		}
	}
	standing := false
	for _, t := range p.w.seats[h] {
		standing = p.gives(t, h) || standing // each is asked: a circle would show
	}
	return standing
}

// among: fewer than 256 such statements have a lower hash.
func (p *part) among(h Hash) bool {
	lower := 0
	for o := range p.in {
		if q := p.w.taken[o]; q.Author == p.w.taken[h].Author && q.ofItself() && bytes.Compare(o[:], h[:]) < 0 {
			lower++
		}
	}
	return lower < maxOwn
}

// roleStands: a grant of the author stands, and no other one has ended it apart from h.
func (p *part) roleStands(h Hash) bool {
	for _, g := range p.w.grants[h] {
		ended := !p.stands(g)
		for r := range p.in {
			s := p.w.taken[r]
			if (s.Kind == Remove || s.Kind == Expire) && s.Author != p.w.taken[h].Author && p.w.apart(r, h) && p.ends(r, g) {
				ended = true
			}
		}
		if !ended {
			return true
		}
	}
	return false
}

// gives: the seat stands, and no statement apart from h takes it.
func (p *part) gives(t, h Hash) bool {
	if p.memo == nil {
		p.memo = map[[2]Hash]int{}
	}
	key := [2]Hash{t, h}
	switch p.memo[key] {
	case 1:
		panic("the rules go in a circle")
	case 2:
		return true
	case 3:
		return false
	}
	p.memo[key] = 1
	good := t == rootHash || p.stands(t)
	s := p.w.taken[h]
	for r := range p.in {
		if p.w.taken[r].Author == p.w.holder(t) && s.Author == s.Subject {
			continue
		}
		if p.w.apart(r, h) && p.takes(r, t) {
			good = false
		}
	}
	p.memo[key] = 3
	if good {
		p.memo[key] = 2
	}
	return good
}

func (p *part) takes(r, t Hash) bool {
	s := p.w.taken[r]
	switch {
	case s.Subject != p.w.holder(t), p.w.after(t, r):
		return false
	case s.Kind == Remove, s.Kind == Grant && s.Role < RoleAdmin:
	case s.Kind == Expire && t != rootHash && p.w.after(r, t) && p.w.taken[t].Expires != 0 && p.w.taken[t].Expires <= s.At:
	default:
		return false
	}
	if s.Author == s.Subject {
		return slices.Contains(p.w.seats[r], t) && p.gives(t, r) && (s.Kind == Grant || p.among(r))
	}
	return p.byOneAbove(r, t)
}

func (p *part) byOneAbove(r, t Hash) bool {
	found := false
	for _, u := range p.w.seats[r] {
		if p.w.above(t)[u] && p.gives(u, r) {
			found = true
		}
	}
	return found
}

func (p *part) replaces(g, t Hash) bool {
	s := p.w.taken[g]
	return t != rootHash && s.Kind == Grant && s.Role == RoleAdmin && s.Subject == p.w.holder(t) && p.w.after(g, t) && p.byOneAbove(g, t)
}

func sortHashes(h []Hash) []Hash {
	slices.SortFunc(h, Hash.compare)
	return h
}

func (p *part) seatsOf(id ID) (seats []Hash) {
	var candidates []Hash
	for h := range p.in {
		s := p.w.taken[h]
		if s.Kind == Found && id == p.w.creator && !slices.Contains(candidates, rootHash) {
			candidates = append(candidates, rootHash)
		}
		if s.Kind == Grant && s.Role == RoleAdmin && s.Subject == id && p.stands(h) {
			candidates = append(candidates, h)
		}
	}
	for _, t := range sortHashes(candidates) {
		free := true
		for r := range p.in {
			if p.takes(r, t) || p.replaces(r, t) {
				free = false
			}
		}
		if free && len(seats) < maxSeats {
			seats = append(seats, t)
		}
	}
	return seats
}

func (p *part) ends(r, g Hash) bool {
	s, grant := p.w.taken[r], p.w.taken[g]
	if r == g || s.Subject != grant.Subject || !p.stands(r) {
		return false
	}
	switch s.Kind {
	case Remove:
		return !p.w.after(g, r)
	case Grant:
		return p.w.after(r, g) || p.w.apart(r, g) && s.Role < grant.Role
	case Expire:
		return p.w.after(r, g) && grant.Expires != 0 && grant.Expires <= s.At
	}
	return false
}

func (p *part) plainOf(id ID) (grants []Hash) {
	for g := range p.in {
		s := p.w.taken[g]
		if s.Kind != Grant || s.Role == RoleAdmin || s.Subject != id || !p.stands(g) {
			continue
		}
		ended := false
		for r := range p.in {
			ended = ended || p.ends(r, g)
		}
		if !ended {
			grants = append(grants, g)
		}
	}
	return grants
}
