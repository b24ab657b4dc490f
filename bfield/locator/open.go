package locator

import (
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// Open returns the Locator that WriteTo saved as data, or ErrFormat. It reads all
// of data once, to verify it, and copies all but the base, which it uses where it
// lies, in a file that is mapped into memory for example: data must stay as it is
// for as long as the Locator is used. workers is that of Config.
func Open(data []byte, workers int) (*Locator, error) {
	refuse := func(format string, args ...any) (*Locator, error) {
		return nil, fmt.Errorf("open a locator of %d bytes: %w: %s", len(data), ErrFormat, fmt.Sprintf(format, args...))
	}
	if len(data) < headerSize+sumSize || len(data)%8 != 0 {
		return refuse("no locator is as long")
	}
	if string(data[:6]) != magic[:6] {
		return refuse("it does not begin like one")
	}
	if string(data[6:8]) != magic[6:] {
		return refuse("version %d is not known, only %d is", int(data[6])<<8|int(data[7]), 1)
	}
	in := &input{data[8 : len(data)-sumSize]}
	if xxh3.Hash(data[:len(data)-sumSize]) != order.Uint64(data[len(data)-sumSize:]) {
		return refuse("its checksum does not fit")
	}
	seed, shards, f, delta := in.word(), in.word(), in.word(), in.word()
	entries, several, baseBytes, fieldBytes := in.word(), in.word(), in.word(), in.word()
	if shards > MaxShards || f > MaxFalsePositiveBits || delta > uint64(FieldDelta) {
		return refuse("%d shards, 2^-%d, delta %d", shards, f, delta)
	}
	c := Config{Shards: int(shards), FalsePositiveBits: int(f), Delta: Delta(delta), Seed: seed, Workers: workers}
	if err := c.check(); err != nil {
		return refuse("%v", err)
	}
	l := newLocator(c, nil)
	v := &view{}
	var err error
	if v.run, err = in.run(entries, c.codeBits()); err != nil {
		return refuse("%v", err)
	}
	if v.several, err = in.several(several, c.Shards); err != nil {
		return refuse("%v", err)
	}
	if err := l.checkCodes(v); err != nil {
		return refuse("%v", err)
	}
	base, field := in.bytes(baseBytes), in.bytes(fieldBytes)
	if base == nil || field == nil || len(in.data) != 0 {
		return refuse("the base has %d bytes and the field %d, which do not fit", baseBytes, fieldBytes)
	}
	if v.base, err = ribbon.MapOf(base); err != nil {
		return refuse("%v", err)
	}
	if value, fingerprint := v.base.Widths(); value != c.base().ValueBits || fingerprint != c.FalsePositiveBits {
		return refuse("the base has values of %d bits and fingerprints of %d", value, fingerprint)
	}
	if len(field) > 0 {
		v.field = new(bfield.Field)
		if err := v.field.UnmarshalBinary(field); err != nil {
			return refuse("%v", err)
		}
		if v.field.Plan().Values != shards || c.Delta != FieldDelta || v.field.Stats().Keys > bfield.MaxKeys {
			return refuse("its field is for %d shards and has %d keys", v.field.Plan().Values, v.field.Stats().Keys)
		}
	}
	v.tail = newTail(v.run.len() + l.inField(v))
	l.view.Store(v)
	return l, nil
}

// checkCodes holds the codes of the exact map to what they may be.
func (l *Locator) checkCodes(v *view) error {
	doubtful := 0
	for e := range v.run.all {
		if e.code > l.config.severalShards() {
			return fmt.Errorf("an entry has code %d", e.code)
		}
		if e.code == l.config.severalShards() {
			if _, ok := v.several[e.key]; !ok {
				return fmt.Errorf("a key is in several shards, and these are not there")
			}
			doubtful++
		}
	}
	if doubtful != len(v.several) {
		return fmt.Errorf("%d keys are in several shards, and %d are listed", doubtful, len(v.several))
	}
	return nil
}

// input is what of the data is not read yet: whole words.
type input struct{ data []byte }

// word returns the next word, or 0 at the end.
func (in *input) word() uint64 {
	if len(in.data) < 8 {
		return 0
	}
	word := order.Uint64(in.data)
	in.data = in.data[8:]
	return word
}

// bytes returns the next n bytes, or nil if there are not as many.
func (in *input) bytes(n uint64) []byte {
	if n > uint64(len(in.data)) || n%8 != 0 {
		return nil
	}
	b := in.data[:n:n]
	in.data = in.data[n:]
	return b
}

func (in *input) words(n uint64) ([]uint64, bool) {
	if n > uint64(len(in.data))/8 {
		return nil, false
	}
	words := make([]uint64, n)
	for i := range words {
		words[i] = in.word()
	}
	return words, true
}

// run reads the exact map, of n entries.
func (in *input) run(n uint64, codeBits uint) (*run, error) {
	if n == 0 {
		return nil, nil
	}
	// An entry has a byte and more: so n has few bits, and nothing overflows.
	if n > uint64(len(in.data)) || bits.Len64(n) > 32 {
		return nil, fmt.Errorf("%d entries in %d bytes", n, len(in.data))
	}
	r := &run{n: int(n), bits: bucketBits(int(n))}
	r.remainders.width, r.codes.width = 64-r.bits, codeBits
	starts, ok := in.words((1<<r.bits + 2) / 2)
	if !ok {
		return nil, fmt.Errorf("it ends among the starts")
	}
	r.starts = make([]uint32, 1<<r.bits+1)
	for i := range r.starts {
		r.starts[i] = uint32(starts[i/2] >> (i % 2 * 32))
		if i > 0 && r.starts[i] < r.starts[i-1] || i == 0 && r.starts[i] != 0 {
			return nil, fmt.Errorf("start %d is before the last one", i)
		}
	}
	if r.starts[1<<r.bits] != uint32(n) || len(r.starts)%2 == 1 && starts[len(starts)-1]>>32 != 0 {
		return nil, fmt.Errorf("the starts end with %d, not with %d", r.starts[1<<r.bits], n)
	}
	var more bool
	r.remainders.words, ok = in.words(uint64(packedWords(r.n, r.remainders.width)))
	r.codes.words, more = in.words(uint64(packedWords(r.n, r.codes.width)))
	if !ok || !more || !r.remainders.clean(r.n) || !r.codes.clean(r.n) {
		return nil, fmt.Errorf("the entries do not fit")
	}
	last, first := uint64(0), true
	for e := range r.all {
		if !first && e.key <= last {
			return nil, fmt.Errorf("the entries are not in order")
		}
		last, first = e.key, false
	}
	return r, nil
}

// clean reports whether all bits behind the first n numbers are zero.
func (p packed) clean(n int) bool {
	end := uint64(n) * uint64(p.width)
	rest := p.words[end>>6:]
	return len(rest) > 0 && rest[0]>>(end&63) == 0 && (len(rest) == 1 || rest[1] == 0)
}

// several reads the keys that are in several shards.
func (in *input) several(n uint64, shards int) (map[uint64][]Shard, error) {
	// A key takes three words.
	if n > MaxSeveral || n > uint64(len(in.data))/24 {
		return nil, fmt.Errorf("%d keys in several shards in %d bytes", n, len(in.data))
	}
	several := make(map[uint64][]Shard, n)
	last := uint64(0)
	for i := range n {
		key, count := in.word(), in.word()
		if i > 0 && key <= last {
			return nil, fmt.Errorf("the keys in several shards are not in order")
		}
		last = key
		if count < 2 || count > uint64(shards) {
			return nil, fmt.Errorf("a key is in %d shards", count)
		}
		words, ok := in.words((count + 3) / 4)
		if !ok {
			return nil, fmt.Errorf("it ends among the keys in several shards")
		}
		list := make([]Shard, count)
		for j := range list {
			list[j] = Shard(words[j/4] >> (j % 4 * 16))
			if j > 0 && list[j] <= list[j-1] || int(list[j]) >= shards {
				return nil, fmt.Errorf("a key is in shards that are not in order")
			}
		}
		if rest := count % 4; rest != 0 && words[len(words)-1]>>(rest*16) != 0 {
			return nil, fmt.Errorf("a key is in shards that are not counted")
		}
		several[key] = list
	}
	return several, nil
}
