package roster

import (
	"cmp"
	"crypto/sha256"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// What the twin says of a member, and of the list as a whole.

func (p *part) role(id ID) (Role, Hash) {
	end := func(h Hash) dbadapter.Timestamp {
		if h == rootHash || p.w.taken[h].Expires == 0 {
			return math.MaxUint64
		}
		return p.w.taken[h].Expires
	}
	if seats := p.seatsOf(id); len(seats) > 0 {
		return RoleAdmin, slices.MinFunc(seats, func(a, b Hash) int { return cmp.Or(-cmp.Compare(end(a), end(b)), a.compare(b)) })
	}
	if plain := p.plainOf(id); len(plain) > 0 {
		g := slices.MinFunc(plain, func(a, b Hash) int {
			return cmp.Or(cmp.Compare(p.w.taken[a].Role, p.w.taken[b].Role), a.compare(b))
		})
		return p.w.taken[g].Role, g
	}
	return 0, Hash{}
}

func (p *part) lapsed(id ID) bool {
	for l := range p.in {
		if s := p.w.taken[l]; s.Kind != Lapse || s.Subject != id || !p.stands(l) {
			continue
		}
		over := false
		for r := range p.in {
			s := p.w.taken[r]
			over = over || s.Kind == Return && s.Author == id && p.w.after(r, l) && p.stands(r)
		}
		if !over {
			return true
		}
	}
	return false
}

func (p *part) epoch(id ID) (n int) {
	for h := range p.in {
		s := p.w.taken[h]
		if s.Subject == id && (s.Kind == Remove || s.Kind == Expire || s.Kind == Lapse) && p.stands(h) {
			n++
		}
	}
	return n
}

// mayWrite looks for a grant that covers the clock.
func (p *part) mayWrite(id ID, clock dbadapter.Timestamp) bool {
	for g := range p.in {
		s := p.w.taken[g]
		founder := s.Kind == Found && id == p.w.creator
		if !founder && (s.Kind != Grant || s.Subject != id || s.Role < RoleWrite || !p.stands(g)) {
			continue
		}
		covers := s.Expires == 0 || clock <= s.Expires
		from := s.Since
		seat := g
		if founder {
			seat = rootHash
		}
		for r := range p.in {
			q := p.w.taken[r]
			ended := p.ends(r, g)
			if founder || s.Role == RoleAdmin {
				ended = p.takes(r, seat) || p.replaces(r, seat)
			}
			if ended && clock > q.At {
				covers = false
			}
			if q.Subject != id || !p.w.after(g, r) || !p.stands(r) || s.Since != 0 {
				continue
			}
			lost := q.Kind == Remove || q.Kind == Expire
			if q.Kind == Grant && q.Role == RoleRead {
				for o := range p.in {
					before := p.w.taken[o]
					lost = lost || before.Kind == Grant && before.Subject == id && before.Role >= RoleWrite && p.w.after(r, o) && p.stands(o)
				}
			}
			if lost {
				from = s.At
			}
		}
		if covers && clock >= from {
			return true
		}
	}
	return false
}

// core are the statements that stand, but for founding statements other than the
// lowest, and those that they reach.
func (p *part) core() map[Hash]bool {
	core := map[Hash]bool{}
	var founds []Hash
	for h := range p.in {
		if p.w.taken[h].Kind == Found {
			founds = append(founds, h)
			continue
		}
		if p.stands(h) {
			core[h] = true
			for o := range p.w.past[h] {
				core[o] = true
			}
		}
	}
	if len(founds) > 0 {
		core[sortHashes(founds)[0]] = true
	}
	return core
}

// layout is, of the layouts that stand, the one of the greatest epoch, then hash.
func (p *part) layout() (best Hash) {
	for h := range p.in {
		s := p.w.taken[h]
		if s.Kind != Layout || !p.stands(h) {
			continue
		}
		b := p.w.taken[best]
		if b == nil || s.Epoch > b.Epoch || s.Epoch == b.Epoch && h.compare(best) > 0 {
			best = h
		}
	}
	return best
}

func (p *part) digest() Digest {
	var hashes []Hash
	for h := range p.core() {
		hashes = append(hashes, h)
	}
	sum := sha256.New()
	for _, h := range sortHashes(hashes) {
		sum.Write(h[:])
	}
	return Digest(sum.Sum(nil)[:16])
}
