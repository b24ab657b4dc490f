package directory

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/bfield/locator"
)

// Work returns what is to be done in the background, or nil: it writes copies to disk, reads
// those that are in doubt, and builds a new base of the index. A driver runs it beside everything
// else, and asks again after it: until what it returned has been run, Work returns nil. It returns
// the errors of the disk; then it is to be asked later. It has done what does not need the files that
// these are about: what cannot be written stays in memory, what cannot be read is fetched anew.
func (l *Locator) Work() func() error {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.working {
		return nil
	}
	var save []*part
	waiting, loading := 0, 0
	s := l.index.Stats()
	for _, p := range l.parts {
		if p.has && (p.fresh != nil || p.doubt || len(p.over) > max(l.leastOver, s.Base/16/l.Shards)) {
			save = append(save, p)
		}
		if p.has && !p.inBase {
			waiting++
		}
		if p.load != nil {
			loading++
		}
	}
	full := s.Exact > l.leastExact+s.Base/8
	if waiting == 0 {
		l.waits = 0
	} else if l.waits == 0 {
		l.waits = l.latest
	}
	// While sets come, a base is built each time as many wait as it has, and so all bases together
	// cost twice the last one. Where sets do not come, the others wait for a time that depends on
	// what a base costs.
	long := l.latest-l.waits > max(2*Fresh, 8*l.took)
	build := waiting > 0 && (loading == 0 || 2*waiting >= l.Shards || long) || full
	if len(save) == 0 && !build {
		return nil
	}
	l.working = true
	return func() error {
		l.writing.Lock()
		defer l.writing.Unlock()
		defer func() {
			l.feeding.Lock()
			l.working = false
			l.feeding.Unlock()
		}()
		err := l.saveAll(save)
		if build {
			err = errors.Join(err, l.timed(l.build))
		}
		return err
	}
}

// saveAll saves the sets that are due, by their homes, also behind one that cannot be saved. It ends
// with maxUnsaved of those, and the next time begins behind them: so they keep no other one from being
// saved, and on a full disk not all are merged in vain each time. writing is held.
func (l *Locator) saveAll(due []*part) error {
	var errs []error
	first := max(0, slices.IndexFunc(due, func(p *part) bool { return p.home > l.tried }))
	for _, p := range slices.Concat(due[first:], due[:first]) {
		if len(errs) == maxUnsaved {
			break
		}
		l.tried = p.home
		if err := l.save(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// timed notes how long a build takes, as far as what is heard meanwhile tells.
func (l *Locator) timed(build func() error) error {
	at := func() time.Duration {
		l.feeding.Lock()
		defer l.feeding.Unlock()
		return l.latest
	}
	begun := at()
	err := build()
	took := at() - begun
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.took, l.waits = took, 0
	return err
}

// Save writes all copies to disk as they are, so that the next start has little to catch up
// with. A crash in the middle, or none of it, loses time alone.
func (l *Locator) Save() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	var due []*part
	l.mu.RLock()
	for _, p := range l.parts {
		if p.has && (p.fresh != nil || len(p.over) > 0 || !p.stored) {
			due = append(due, p)
		}
	}
	l.mu.RUnlock()
	return l.saveAll(due)
}

// content is a copy as of one moment.
type content struct {
	base iter.Seq[row]
	over rows
	sum  Sum
	at   place
	gen  int
	// entries are those of the copy, as they were counted.
	entries int
	// doubts are those that reading it ends.
	doubts int
}

// content reads what the set's copy holds. ok is false if it has none, or none any more: one that is
// damaged is let go of, and so is one that cannot be read, of which the error tells.
func (l *Locator) content(p *part) (c content, ok bool, err error) {
	l.feeding.Lock()
	l.mu.RLock()
	fresh, stored := p.fresh, p.stored
	c, ok = content{over: slices.Clone(p.over), sum: p.sum, gen: p.gen, doubts: p.doubts, entries: p.entries, at: place{host: p.from}}, p.has
	if p.from != "" {
		c.at.log, c.at.seq = l.hosts[p.from].log, l.hosts[p.from].seq
	}
	l.mu.RUnlock()
	l.feeding.Unlock()
	switch {
	case !ok:
	case fresh != nil:
		c.base = slices.Values(fresh)
	case !stored:
		c.base = slices.Values(rows{})
	default:
		data, err := l.Disk.Read(p.name())
		if err != nil {
			l.distrust(p, c.gen, false)
			return c, false, fmt.Errorf("read a copy of what hosts tell: %w", err)
		}
		rs, _, _, err := parseCopy(data, l.Shards, p.home)
		if err != nil {
			l.distrust(p, c.gen, false)
			return c, false, nil
		}
		c.base = slices.Values(rs)
	}
	return c, ok, nil
}

// distrust lets go of a copy that is damaged, or whose rows are read: they do not say what they should,
// for which the host is to blame that has put them in doubt.
func (l *Locator) distrust(p *part, gen int, read bool) {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.gen != gen {
		return
	}
	doubted, by := p.doubt, p.doubter
	p.from = ""
	p.drop()
	if read && doubted {
		_ = l.fault(by, p, "set %d does not say what its events say", p.home) // counted
	} else {
		l.damaged++
	}
}

// save writes the copy of a set to disk, and so verifies it.
func (l *Locator) save(p *part) error {
	c, ok, err := l.content(p)
	if err != nil || !ok {
		return err
	}
	merged := make(rows, 0, len(c.over))
	for x := range merge(c.base, c.over) {
		merged = append(merged, x)
	}
	if merged.sum() != c.sum {
		l.distrust(p, c.gen, true)
		return nil
	}
	data, err := appendCopy(nil, l.Shards, p.home, c.at, c.sum, slices.Values(merged))
	if err == nil {
		err = l.Disk.Write(p.name(), data)
	}
	if err != nil {
		return fmt.Errorf("write a copy of what hosts tell: %w", err)
	}
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.gen != c.gen {
		// The file is of a copy that was let go of: nothing reads it until another has taken its
		// place, or it is resumed from after a crash, as the older copy that it is.
		return nil
	}
	p.fresh, p.stored, p.saved = nil, true, c.at
	var over rows
	for _, x := range p.over {
		if i, ok := c.over.find(x.index()); !ok || c.over[i] != x {
			over = append(over, x)
		}
	}
	p.over = over
	p.doubt = p.doubts != c.doubts
	p.entries += len(merged) - c.entries
	return nil
}

// build builds a new base of the index, of all copies that can be read. Changes go on.
func (l *Locator) build() error {
	begun, built := map[*part]int{}, map[*part]int{}
	before := make([]int, len(l.parts)) // gens
	l.mu.Lock()
	for i, p := range l.parts {
		before[i] = p.gen
		if p.building = p.has; p.building {
			begun[p] = p.gen
		}
	}
	l.mu.Unlock()
	l.chosen()
	var unread []error
	err := l.index.Rebuild(func(yield func(uint64, locator.Shard) bool) error {
		for _, p := range l.parts {
			if _, ok := begun[p]; !ok {
				continue
			}
			c, ok, err := l.content(p)
			if err != nil {
				unread = append(unread, err)
			}
			if !ok {
				continue
			}
			sum := Sum{}
			for x := range merge(c.base, c.over) {
				sum.add(x, 1)
				if x.code() != Shared && !yield(mix(p.home, x.index()), locator.Shard(x.code())) {
					return nil
				}
			}
			if sum != c.sum {
				l.distrust(p, c.gen, true)
				continue
			}
			built[p] = c.gen
		}
		return nil
	})
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.parts {
		gen, ok := built[p]
		_, was := begun[p]
		switch {
		case err != nil: // the index is as it was, with the changes since
			p.stale = p.stale || was && !p.inBase
		case ok && p.gen == gen && p.building:
			p.inBase, p.stale = true, false
		default: // of a copy that came or was let go of in between, the index has some changes, or none
			p.inBase, p.stale = false, was || p.gen != before[i]
		}
		p.building = false
	}
	return errors.Join(append(unread, err)...)
}
