// Package bfield stores which small value goes with which key, in some bytes a
// key, without the keys. It is the B-field with its formulas corrected. The source
// is N. B. Greenfield, "A space-efficient, probabilistic data structure and storage
// and retrieval method for key-value information" (2014).
//
// # The idea
//
// A Bloom filter sets one bit at each of k places of a key, and so remembers
// that the key was there. A B-field sets a whole pattern there, its marker, and so
// remembers a value as well. The pattern of value y is the y-th string of ν
// bits with κ ones (ENCODE, the paper's Figure 1). With ν = 5, κ = 2, k = 3:
//
//	                      value 2 is 00101
//	insert x → 2      h1(x)         h2(x)             h3(x)
//	                    ↓             ↓                 ↓
//	the array   0 1 0 0 1 0 1 1 0 1 0 1 1 1 0 0 1 0 0 0 1 0 1 0
//	                   |0 0 1 0 1|   |0 0 1 0 1|       |0 0 1 0 1|
//
// A look-up takes the windows of ν bits at the k places and ANDs them:
//
//	window at h1(x)   0 0 1 0 1
//	window at h2(x)   0 0 1 1 1
//	window at h3(x)   0 1 1 0 1
//	                  ---------
//	in common         0 0 1 0 1   κ ones: DECODE says 2
//
// The marker of x is in all its windows, other ones only by chance. The ones in
// common decide:
//
//   - Fewer than κ: x was never inserted (Absent).
//   - Just κ: they are the value (Found).
//   - More, by chance: the value is one of several (Indeterminate).
//
// The part β of the keys is indeterminate. These go, with their markers, into a
// second array, which has the part β of the first one's size. Those that are still
// indeterminate go into a third:
//
//	Array 0  ████████████████████████████████   n keys
//	Array 1  ███                                β·n, indeterminate in Array 0
//	Array 2  ▏                                  indeterminate in both
//
// until no key is left. All arrays together take at most m·κ/(1−β) bits. A key
// that was never inserted is found with probability α.
//
// # Use
//
//	f, err := bfield.Build(bfield.Config{Keys: n, Values: 256, FalsePositive: 1.0 / 256}, keys, values)
//	value, answer := f.Lookup(keyed.Bytes(key))
//
// Build is for keys that are all at hand, BuildFrom for those of a store. New and Add
// are for keys that arrive one by one and are kept elsewhere, from where RepairedFrom
// reads them. When a field is full, BuildFrom makes a larger one. Save writes a field to
// a file and Open reads it. FieldOf uses its bytes where they lie. Keys are those of
// package keyed: byte strings or numbers.
//
// NewPlan tells beforehand what a field will cost. For 256 values and α = 1/256 it
// chooses, with the true rate and the paper's:
//
//	ν 24, κ 2 (276 codes), k 8 hash functions, m/n 11.5907
//	false positives α   0.003906 = 2^-8.00   paper 0.003693 = 2^-8.08
//
// # Where this differs from the paper
//
//   - The paper's α is right for κ = 1 only. The bits of a marker lie together, so
//     markers overlap in more than one bit, and the true rate is higher. It is
//     higher by 10 to 33 % for κ = 2, and 1.5- to 7-fold for κ = 3 and 4, the more
//     the lower α is. NewPlan plans by the true rate; rate.go has the sum.
//   - Values are whitened before they are encoded. A hash of the key is added,
//     modulo the number of codes. So a value that many keys have costs nothing.
//   - Step 2 prints composite hashes whose first is always 0. The sum it must mean
//     lets keys share all windows. place.go has the repair.
//   - A look-up keeps what the windows of all arrays have in common, not those of
//     the last one alone. Fewer keys go into the third array, so the whole is a
//     little smaller than m·κ/(1−β).
//   - The paper says that a wrong value for an inserted key is impossible. That
//     holds when the field is repaired. Before, a key may not be in its secondary
//     array yet. Its windows there may agree by chance on a wrong one of its
//     candidates. At α 2^-8 that is one in 10^4 look-ups of such keys (measured).
//   - Insertion without a second pass gives not only indeterminate keys but wrong
//     misses, if a miss in a secondary array is taken for one. Until a repair such
//     keys are answered Indeterminate.
//
// # What is not promised
//
// The hash is XXH3 under a seed that is stored with the field. An adversary that
// knows the seed and may choose keys can raise α for chosen keys. Hash untrusted
// keys under a secret first, and give the hashes as numbers.
//
// Pairs of 64-bit keys never collide. Two other keys share their 128-bit hash with
// probability 2^-128.
package bfield
