package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cutWord splits a line after its first word.
func cutWord(line string) (word, rest string) {
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimLeft(line[i:], " \t")
	}
	return line, ""
}

// number reads a whole number within bounds.
func number(what, s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s %q: want a number from %d to %d", what, s, least, most)
	}
	return n, nil
}

// duration reads a time within bounds.
func duration(what, s string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s %q: want a time from %s to %s, as in 1.5s or 2m", what, s, span(least), span(most))
	}
	return d, nil
}

// probability reads a number from 0 to 1.
func probability(what, s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) { // a NaN fails both
		return 0, fmt.Errorf("%s %q: want a share from 0 to 1, as in 0.05", what, s)
	}
	return math.Abs(f), nil // −0 is 0
}

// byteSize reads a size.
func byteSize(what, s string) (int, error) {
	for _, u := range units { // B comes last, it ends the others too
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n <= MaxSize/u.bytes {
				return n * u.bytes, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("%s %q: want a size from 0B to 1MiB, as in 100B", what, s)
}

// link reads "0>1".
func link(s string) (from, to int, err error) {
	a, b, ok := strings.Cut(s, ">")
	from, errA := strconv.Atoi(a)
	to, errB := strconv.Atoi(b)
	if !ok || errA != nil || errB != nil {
		return 0, 0, fmt.Errorf("link %q: want two nodes, as in 0>1", s)
	}
	return from, to, nil
}

// groups reads "0,1|2,3" and gives its normal form: nodes in order within each
// group, and groups in order of their first node. No node stands in two.
func groups(s string) (string, error) {
	e := Event{Key: s}
	all := e.Groups()
	named := slices.Concat(all...)
	slices.Sort(named)
	switch {
	case all == nil || named[0] < 0:
		return "", fmt.Errorf("groups %q: want nodes, as in 0,1|2,3", s)
	case len(slices.Compact(slices.Clone(named))) != len(named):
		return "", fmt.Errorf("groups %q: a node stands in two of them", s)
	}
	return groupText(all), nil
}

// groupText is groups in their normal form.
func groupText(groups [][]int) string {
	var text []string
	for _, g := range groups {
		slices.Sort(g)
	}
	slices.SortFunc(groups, slices.Compare)
	for _, g := range groups {
		text = append(text, strings.ReplaceAll(join(g), ", ", ","))
	}
	return strings.Join(text, "|")
}

// Groups are the nodes of a partition's groups; nil where the key names none.
func (e *Event) Groups() (groups [][]int) {
	for _, g := range strings.Split(e.Key, "|") {
		var nodes []int
		for _, word := range strings.Split(g, ",") {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil
			}
			nodes = append(nodes, n)
		}
		groups = append(groups, nodes)
	}
	return groups
}

// checkWord accepts a word that is safe in a line and in the name of a file.
func checkWord(what, s string) error {
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:/", r)
	}
	switch {
	case s == "":
		return fmt.Errorf("the %s is missing", what)
	case len(s) > MaxKeyBytes:
		return fmt.Errorf("the %s has %d bytes; it has at most %d", what, len(s), MaxKeyBytes)
	case strings.ContainsFunc(s, bad):
		return fmt.Errorf("%s %q: want letters, digits, and - _ . : /", what, s)
	}
	return nil
}

// with is a sorted set with one more element.
func with[T cmp.Ordered](list []T, x T) []T {
	i, found := slices.BinarySearch(list, x)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), i, x)
}

func join[T any](list []T) string {
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = fmt.Sprint(x)
	}
	return strings.Join(words, ", ")
}

// oneOf reads a word that is in a list.
func oneOf[T ~string](what, s string, list []T) (T, error) {
	if !slices.Contains(list, T(s)) {
		return "", fmt.Errorf("unknown %s %q; the %ss are %s", what, s, what, join(list))
	}
	return T(s), nil
}
