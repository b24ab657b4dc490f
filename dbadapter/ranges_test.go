package dbadapter

import "testing"

// The ranges follow one another, and hold every index once.
func TestRangesCoverTheIndices(t *testing.T) {
	next := Index(1)
	for r := range Range(Ranges) {
		from, to := r.Bounds()
		if from != next || to <= from || RangeOf(from) != r || RangeOf(to-1) != r {
			t.Fatalf("range %d: from %d to %d, after %d", r, from, to, next)
		}
		next = to
	}
	if next != 1<<42-11 {
		t.Errorf("the ranges end at %d", next)
	}
}

func TestSum(t *testing.T) {
	a, b := Sum{3, Digest{5, 6}}, Sum{1, Digest{9, 1}}
	if s := a.Add(b); s != (Sum{4, Digest{14, 7}}) || s.Sub(b) != a || (Sum{}).Sub(a).Add(a) != (Sum{}) {
		t.Errorf("%v", s)
	}
}
