package check

import (
	"slices"
	"testing"
)

// A node that has lapsed returns once it meets one that the members wait for, or if they
// wait for no node.
func TestReturning(t *testing.T) {
	lapsed := func(node int) Seat { return Seat{Node: node, Role: "write", Lapsed: true} }
	active := func(node int) Seat { return Seat{Node: node, Role: "write"} }
	for name, c := range map[string]struct {
		seats []Seat
		here  []int
		want  []int
	}{
		"beside an active one":     {[]Seat{active(0), lapsed(1)}, []int{0, 1}, []int{1}},
		"the active one is away":   {[]Seat{active(0), lapsed(1), lapsed(2)}, []int{1, 2}, nil},
		"it is away itself":        {[]Seat{active(0), lapsed(1)}, []int{0}, nil},
		"the only one":             {[]Seat{lapsed(1)}, []int{1}, []int{1}},
		"all that are left lapsed": {[]Seat{lapsed(1), lapsed(2), lapsed(3)}, []int{1, 2}, []int{1, 2}},
		"none has lapsed":          {[]Seat{active(0), active(1)}, []int{0, 1}, nil},
	} {
		r := Roster{Seats: c.seats}
		if got := r.Returning(func(node int) bool { return slices.Contains(c.here, node) }); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v return, want %v", name, got, c.want)
		}
	}
}
