package rateless

import (
	"errors"
	"slices"
	"testing"
)

// A restored sketch has the cells of the one that it was made of, and follows
// further changes alike.
func TestRestore(t *testing.T) {
	key := Key{1, 2}
	s := NewSketch(key, 500)
	for i := range Index(3000) {
		s.Add(sealed(i+1, uint64(i*i+7)))
	}
	r, err := Restore(key, s.Prefix(500), s.Estimator())
	if err != nil {
		t.Fatal(err)
	}
	for i := range Index(270_000) { // more than a sum has room for without being reduced
		old, fresh := sealed(i%9+1, uint64(i+1)), sealed(i%9+1, uint64(i+2))
		s.Replace(old, fresh)
		r.Replace(old, fresh)
	}
	if !slices.Equal(s.Prefix(500), r.Prefix(500)) || !slices.Equal(s.Estimator(), r.Estimator()) {
		t.Error("the restored sketch has gone another way")
	}
	bad := s.Prefix(500)
	bad[7].S1 = P
	if _, err := Restore(key, bad, s.Estimator()); !errors.Is(err, ErrCell) {
		t.Errorf("a cell out of range gives %v, want ErrCell", err)
	}
	if _, err := Restore(key, s.Prefix(500), s.Estimator()[1:]); !errors.Is(err, ErrCell) {
		t.Errorf("a short estimator gives %v, want ErrCell", err)
	}
}
