package quorum

import "bytes"

// later reports whether a row takes the place of another one where two members meet: the one with
// the greater epoch, and of one epoch that with the greater name. (3)
func later(r, other *Row) bool {
	a, b := r.Name(), other.Name()
	return r.Epoch > other.Epoch || r.Epoch == other.Epoch && bytes.Compare(a[:], b[:]) > 0
}
