package locator

import "github.com/syncd-io/syncd/bfield/keyed"

// Lookup says in which shard the key with this hash is, and how sure that is.
// The shard is 0 if the answer is Nowhere, Removed or OneOf.
func (l *Locator) Lookup(hash uint64) (Shard, Answer) {
	v := l.view.Load()
	if code, ok := v.exact(l.key(hash)); ok {
		return l.meaning(code)
	}
	return l.known(v.lower(hash))
}

// meaning is what a code of the exact map answers.
func (l *Locator) meaning(code uint32) (Shard, Answer) {
	switch code {
	case l.config.gone():
		return 0, Removed
	case l.config.severalShards():
		return 0, OneOf
	}
	return Shard(code), Exact
}

// known turns a shard that does not exist into Nowhere: if the shards are no
// power of two, a false positive may name one.
func (l *Locator) known(s Shard, a Answer) (Shard, Answer) {
	if int(s) >= l.config.Shards {
		return 0, Nowhere
	}
	return s, a
}

// batch is how many hashes a batch asks the base for at once.
const batch = 128

// LookupBatch sets shards[i] and answers[i] to what Lookup(hashes[i]) returns,
// faster than one by one. It panics if shards or answers is shorter than hashes.
func (l *Locator) LookupBatch(hashes []uint64, shards []Shard, answers []Answer) {
	shards, answers = shards[:len(hashes)], answers[:len(hashes)]
	v := l.view.Load()
	var rest, values [batch]uint64
	var found [batch]bool
	var at [batch]int
	for from := 0; from < len(hashes); from += batch {
		n := 0
		for i := from; i < min(from+batch, len(hashes)); i++ {
			if code, ok := v.exact(l.key(hashes[i])); ok {
				shards[i], answers[i] = l.meaning(code)
				continue
			}
			rest[n], at[n] = hashes[i], i
			n++
		}
		v.base.LookupBatch(keyed.Numbers(rest[:n]), values[:n], found[:n])
		for j, i := range at[:n] {
			if found[j] {
				shards[i], answers[i] = l.known(Shard(values[j]), Likely)
			} else {
				shards[i], answers[i] = v.delta(hashes[i])
			}
		}
	}
}

// Candidates returns the shards in which the key may be, in no special order:
// one if it is Exact or Likely, several if it is OneOf. The shard of a key that
// was fed is among them.
func (l *Locator) Candidates(hash uint64) []Shard {
	v := l.view.Load()
	key := l.key(hash)
	code, exact := v.exact(key)
	switch {
	case exact && code == l.config.severalShards():
		return append([]Shard(nil), v.several[key]...)
	case exact && code == l.config.gone():
		return nil
	case exact:
		return []Shard{Shard(code)}
	}
	if s, answer := l.known(v.lower(hash)); answer == Likely {
		return []Shard{s}
	} else if answer == Nowhere {
		return nil
	}
	var shards []Shard
	for _, s := range v.field.Candidates(keyed.Number(hash)) {
		shards = append(shards, Shard(s))
	}
	return shards
}
