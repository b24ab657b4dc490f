package keyed

// List is the keys of a build or of a batch, all byte strings or all numbers. It is a view
// of the caller's slice, because 10^7 keys would take 320 MB if each were a Key. The zero
// List is empty.
type List struct {
	bytes   [][]byte
	numbers []uint64
}

// ByteStrings is the list of the keys that the elements hold. It keeps the slice.
func ByteStrings(of [][]byte) List { return List{bytes: of} }

// Numbers is the list of the keys that the elements are. It keeps the slice.
func Numbers(of []uint64) List { return List{numbers: of} }

// Len is the number of keys.
func (l List) Len() int { return len(l.bytes) + len(l.numbers) }

// At is key i.
func (l List) At(i int) Key {
	if l.bytes != nil {
		return Bytes(l.bytes[i])
	}
	return Number(l.numbers[i])
}

// Slice is the list of the keys from number from on, without that of number end.
func (l List) Slice(from, end int) List {
	if l.bytes != nil {
		return List{bytes: l.bytes[from:end]}
	}
	return List{numbers: l.numbers[from:end]}
}

// Choose is the list of the keys i for which choose says yes, in their order.
func (l List) Choose(choose func(i int) bool) (chosen List) {
	for i := range l.Len() {
		switch {
		case !choose(i):
		case l.bytes != nil:
			chosen.bytes = append(chosen.bytes, l.bytes[i])
		default:
			chosen.numbers = append(chosen.numbers, l.numbers[i])
		}
	}
	return chosen
}
