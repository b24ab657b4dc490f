package iblt

import "math/bits"

// bitWriter appends bits to bytes, the lowest first.
type bitWriter struct {
	out  []byte
	word uint64 // bits that do not fill a byte yet
	used int
}

// write appends the low n bits of x.
func (w *bitWriter) write(x uint64, n int) {
	for n > 0 {
		take := min(n, 8-w.used)
		w.word |= x & (1<<take - 1) << w.used
		w.used += take
		x >>= take
		n -= take
		if w.used == 8 {
			w.out = append(w.out, byte(w.word))
			w.word, w.used = 0, 0
		}
	}
}

// gamma appends x > 0 in Elias' gamma code. It is as many zeros as x has bits
// after the first, then x from its first bit on. 1 takes one bit, 2 and 3
// take three.
func (w *bitWriter) gamma(x uint64) {
	n := bits.Len64(x)
	w.write(0, n-1)
	w.write(1, 1)
	w.write(x, n-1)
}

// bytes completes the last byte with zeros.
func (w *bitWriter) bytes() []byte {
	if w.used > 0 {
		w.write(0, 8-w.used)
	}
	return w.out
}

// bitReader reads what a bitWriter wrote. Once there was too little, short is
// true and all it reads is zero.
type bitReader struct {
	in    []byte
	used  int // bits of in[0]
	short bool
}

func (r *bitReader) read(n int) (x uint64) {
	for done := 0; done < n; {
		if len(r.in) == 0 {
			r.short = true
			return 0
		}
		take := min(n-done, 8-r.used)
		x |= uint64(r.in[0]) >> r.used & (1<<take - 1) << done
		done += take
		r.used += take
		if r.used == 8 {
			r.in, r.used = r.in[1:], 0
		}
	}
	return x
}

// gamma reads a number below 2^most; ok is false if the bits are no such number.
func (r *bitReader) gamma(most int) (x uint64, ok bool) {
	zeros := 0
	for r.read(1) == 0 {
		zeros++
		if zeros >= most || r.short {
			return 0, false
		}
	}
	return r.read(zeros) | 1<<zeros, !r.short
}

// atEnd reports whether nothing follows but the zeros that complete a byte.
func (r *bitReader) atEnd() bool {
	if r.short {
		return false
	}
	if r.used == 0 {
		return len(r.in) == 0
	}
	return len(r.in) == 1 && r.in[0]>>r.used == 0
}
