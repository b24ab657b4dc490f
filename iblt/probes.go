package iblt

import "math/bits"

// Probes are the low bytes of the check fields of some cells of a set's
// sequence: of the first 16, then of 16 an octave up to cell 2^19, 256 bytes in
// all. Two sets' Probes tell how many differences lie between them.
type Probes []byte

// MaxProbes is the largest number of Probes, which is their size in bytes.
const MaxProbes = 256

// anOctave is the number of probes to each doubling of the position. With 16
// the standard error of an estimate is 16 % (theory), with 4 it would be 32 %.
const anOctave = 16

// probesEnd is 2^19, beyond the last probe. Half of the probes of an octave
// differ where it lies at 4 times the number of differences: up to some 10^5
// differences can be told apart.
const probesEnd = anOctave << (MaxProbes/anOctave - 1)

// probeAt is the position of probe i: 0 to 15, then 16 steps to each doubling.
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
