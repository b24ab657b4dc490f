package advice

import (
	"testing"

	"pgregory.net/rapid"
)

// editsTwin is the definition.
func editsTwin(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return editsTwin(a[1:], b[1:])
	}
	return 1 + min(editsTwin(a[1:], b), editsTwin(a, b[1:]), editsTwin(a[1:], b[1:]))
}

func TestEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := Edits(a, b), editsTwin(a, b); got != want {
			t.Fatalf("%q and %q are %d apart, want %d", a, b, got, want)
		}
	})
}
