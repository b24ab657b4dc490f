// Package rustfile reads and writes the files of rust-bfield, the B-field in Rust
// by One Codex (github.com/onecodex/rust-bfield, crate bfield 0.2 and 0.3). Package
// bfield explains what a B-field is. Its placement and its format are others.
//
//	f, err := rustfile.Open("taxa.0.bfd")
//	value, answer := f.Lookup(key)
//
//	f, err := rustfile.Build(config, keys, values)
//	err = f.Save("folder", "taxa")
//
// # Format
//
// Each array of the cascade is a file of its own: NAME.0.bfd is the first, NAME.1.bfd
// the second, and so on. The first number that is missing ends them.
//
//	offset  length  what
//	0       2       bf 1d
//	2       2       H, the length of the header, big-endian
//	4       H       the header: k, ν and κ, a byte each; then 0, or 1 and the
//	                application's own parameters up to the header's end
//	4+H     8       N, the length of the array in bits, big-endian
//	12+H    ⌈N/8⌉   the array, which ends the file
//
// The application's parameters are of any type, in the encoding of bincode 1. A
// string is its length in 8 bytes, little-endian, and its bytes. Only the first
// array has them.
//
// Bit i of an array is bit 7−(i mod 8) of byte i/8, counted from the least
// significant. So the first bit of a byte is its highest one. A window of ν bits is
// a number, whose most significant bit is the window's first.
//
// Let h0 and h1 be the two halves of MurmurHash3 (x64, 128 bits, seed 0) of the
// key. Window i, from 0 to k−1, begins at bit
//
//	((h0 + i·h1) mod 2^64) mod (N − ν)
//
// The marker of value v is the number with κ ones for which v such numbers are
// smaller. With ones at the bits c_1 < c_2 < … < c_κ, v = C(c_1, 1) + C(c_2, 2) + …
// + C(c_κ, κ). An insertion ORs the marker into the k windows, and a look-up ANDs
// these. Fewer than κ ones: the key is absent. Just κ: they are its marker. More:
// the next array is asked in the same way, by itself.
//
// # The original's faults
//
// As its source shows them (src/bfield.rs, src/bfield_member.rs and
// src/combinatorial.rs; mmap-bitvec, src/mmap_bitvec.rs):
//
//   - It stores a value of 200,000 or more as the one below. So 199,999 and 200,000
//     are alike in its files. Its look-up is right. Lookup here answers what the
//     file says, as the original does. With a file that the original wrote, the
//     caller adds one to what is 200,000 or more. Build stores the value itself, and
//     so the original answers it rightly.
//   - A value that has no marker of ν bits sets bits outside the windows, or none.
//     Build refuses it with bfield.ErrValue.
//   - Making a field over older files keeps their ones, and their further arrays.
//     Save refuses to write where such a file is.
//   - A key that is indeterminate in all arrays is answered like an absent one.
//     Lookup answers bfield.Indeterminate, and Build refuses such a field.
//   - It answers a marker of 2^32 or more, which no key was given, cut to 32 bits.
//     Lookup answers bfield.Absent.
//   - It opens files with parameters that it then cannot look up with. Open refuses
//     them.
//
// # What is not here
//
// The format has no checksum. A file of the right length with other bits answers
// wrongly, and nothing tells. The format of the original's versions 0.1 in its mode
// "legacy" (.mmap, .params) is not read.
//
// A bfield.Field cannot be made of such a file, nor a file of a Field. Neither has
// the keys, and they hash differently. With the keys at hand, look them up in the
// one and build the other.
//
// The source of this description is the original's code. Known vectors of its hash,
// places and markers are tested. The original could not be run. So files that it
// wrote, and its reading of files written here, are not tested.
package rustfile
