package iblt

import "math/bits"

// Probes are the low bytes of the check fields of some cells of a set's
// sequence: of the first 128, then of 128 an octave up to cell 2^22. Two sets'
// Probes tell how many differences lie between them.
//
// One bit of each is looked at, and travels: eight probes fill a byte. A bit of
// two unequal cells is equal in half of the cases, a byte in one of 256; but
// eight bits of eight cells tell twice as much about the number of differences
// as the byte of one (Fisher information: π²/24 a bit, less than π²/6 a byte).
type Probes []byte

const (
	// MaxProbes is the largest number of Probes.
	MaxProbes = 2048
	// MaxPacked is the largest size of packed Probes in bytes.
	MaxPacked = MaxProbes / 8
)

// anOctave is the number of probes to each doubling of the position. With 128
// the standard error of an estimate is 11.5 % (theory), with 64 it would be 16 %.
const anOctave = 128

// probesEnd is 2^22, beyond the last probe. Half of the cells of an octave
// differ where it lies at 4 times the number of differences: up to 10^6
// differences can be told apart.
const probesEnd = anOctave << (MaxProbes/anOctave - 1)

// probeBit is the bit of probe i that is looked at. The bits take turns: by
// one bit alone, each second pair would be unseen in all of its cells.
func probeBit(i int) byte { return 1 << (i % 8) }

// Pack returns the bits that are looked at, eight probes a byte. Probes beyond
// the last full byte are left out.
func (p Probes) Pack() []byte {
	out := make([]byte, min(len(p), MaxProbes)/8)
	for i := range 8 * len(out) {
		out[i/8] |= p[i] & probeBit(i)
	}
	return out
}

// UnpackProbes reads what Pack returned. Any bytes are Probes; those beyond
// MaxPacked are left out.
func UnpackProbes(packed []byte) Probes {
	if len(packed) == 0 {
		return nil
	}
	p := make(Probes, 8*min(len(packed), MaxPacked))
	for i := range p {
		p[i] = packed[i/8] & probeBit(i)
	}
	return p
}

// probeAt is the position of probe i: 0 to 127, then 128 steps to each doubling.
func probeAt(i int) int {
	octave := i / anOctave
	if octave == 0 {
		return i
	}
	return (anOctave + i%anOctave) << (octave - 1)
}

// probesBelow is the number of probes at positions below m.
func probesBelow(m int) int {
	i := 0
	for i < MaxProbes && probeAt(i) < m {
		i++
	}
	return i
}

// farProbes are the check fields at the positions of probes from the first on:
// sparse cells, kept beyond those of a sketch for the estimate.
type farProbes struct {
	first  int
	checks [MaxProbes]uint32
}

// add adds check to the probe at position at, if there is one, of those from
// the first on.
func (f *farProbes) add(at, check uint32) {
	probe := int(at)
	if at >= anOctave {
		octave := bits.Len32(at) - bits.Len32(anOctave) + 1
		shift := octave - 1
		if at&(1<<shift-1) != 0 {
			return
		}
		probe = octave*anOctave + int(at>>shift) - anOctave
	}
	f.checks[probe] = (f.checks[probe] + check) & checkMask
}
