package rateless

// none ends the lists of an agenda.
const none = -1

// agenda keeps the found pairs by the next cell that they belong to. A new cell
// then costs no more than the pairs in it. Cells up to a horizon have a list
// each. Pairs that go beyond it are in one list, which is sorted in when the
// horizon has doubled. That is a step or two for each pair, where a heap needs
// a logarithm.
type agenda struct {
	heads []int32 // first pair of each cell below the horizon
	far   int32   // first of the pairs beyond it
}

// grow moves the horizon to at least n and returns the steps it took.
func (a *agenda) grow(n int, found []belief) int {
	if n <= len(a.heads) {
		return 0
	}
	old := len(a.heads)
	a.heads = append(a.heads, make([]int32, max(n, 2*old)-old)...)
	for i := old; i < len(a.heads); i++ {
		a.heads[i] = none
	}
	steps := 0
	at := a.far
	a.far = none
	for at != none {
		next := found[at].next
		a.put(at, found)
		steps++
		at = next
	}
	return steps
}

// put enters pair at under its mapping's cell, unless it was put back.
func (a *agenda) put(at int32, found []belief) {
	if !found[at].held() {
		return
	}
	head := &a.far
	if cell := int(found[at].at); cell < len(a.heads) {
		head = &a.heads[cell]
	}
	found[at].next, *head = *head, at
}

// take empties the list of a cell and returns its first pair.
func (a *agenda) take(cell int) int32 {
	head := a.heads[cell]
	a.heads[cell] = none
	return head
}
