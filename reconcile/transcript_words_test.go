package reconcile

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// shortened leaves out what comes in turns: cells that are asked for, records
// that are applied as they come.
func shortened(steps []string) []string {
	var out []string
	for n, step := range steps {
		if n < 4 || step != steps[n-2] || steps[n-1] != steps[n-3] {
			out = append(out, step)
		}
	}
	return out
}

// ended tells how a side saw the sync end.
func (s *stage) ended(n int, session *Session) {
	r := session.Report()
	fmt.Fprintf(&s.out, "    %c: %s, %d rounds, %d cells; %d missing here, %d there, %d mismatched; applied %d, sent %d, rejected %d", 'a'+n,
		r.Method, r.Rounds, r.Cells, r.MissingHere, r.MissingThere, r.Mismatched, r.Applied, r.Sent, r.Rejected)
	if r.Repair.Needed() {
		fmt.Fprintf(&s.out, "; repair %+v", r.Repair)
	}
	switch err := session.Err(); {
	case err != nil:
		fmt.Fprintf(&s.out, "; failed: %v\n", err)
	case r.Verified:
		fmt.Fprintln(&s.out, "; verified")
	default:
		fmt.Fprintln(&s.out, "; not verified")
	}
}

// describe is a message in words.
func (s *stage) describe(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Hello:
		words := []string{fmt.Sprintf("Hello    %d records, %d cells", m.Records, len(m.Cells))}
		if m.Version != wire.Version {
			words = append(words, fmt.Sprintf("version %d", m.Version))
		}
		if m.Direction != wire.Both {
			words = append(words, m.Direction.String())
		}
		if m.Method != wire.MethodAuto {
			words = append(words, m.Method.String())
		}
		if m.DryRun {
			words = append(words, "dry run")
		}
		if m.ListsMayDiffer {
			words = append(words, "lists may differ")
		}
		if len(m.Prefix) > 0 {
			words = append(words, fmt.Sprintf("prefix %q", m.Prefix))
		}
		if m.Span != (wire.Span{}) {
			words = append(words, fmt.Sprintf("ranges %d to %d", m.Span.From, m.Span.To-1))
		}
		return strings.Join(words, ", ")
	case *wire.Welcome:
		return fmt.Sprintf("Welcome  %d records", m.Records)
	case *wire.Same:
		return "Same"
	case *wire.More:
		return fmt.Sprintf("More     %d cells", m.Cells)
	case *wire.Cells:
		return fmt.Sprintf("Cells    %d", len(m.Cells))
	case *wire.Indices:
		var keys []string
		for _, i := range m.Indices {
			key, known := s.keys[i]
			if !known {
				key = "?"
			}
			keys = append(keys, key)
		}
		return fmt.Sprintf("Indices  %s: %s", [...]string{1: "lacking", 2: "wanted", 3: "newer", 4: "older", 5: "fetch"}[m.Role], list(keys))
	case *wire.Offers:
		var keys []string
		for _, o := range m.Offers {
			keys = append(keys, mark(o.Record, map[string]bool{"hash": o.Hashed}))
		}
		if m.Wanting {
			return "Offers   wanting newer than " + list(keys)
		}
		return "Offers   " + list(keys)
	case *wire.Result:
		return fmt.Sprintf("Result   %s, %d bytes to come, estimate %d", m.Method, m.Bytes, m.Estimate)
	case *wire.Sums:
		return fmt.Sprintf("Sums     of %d ranges", len(m.Sums))
	case *wire.Answer:
		if m.Closing {
			return "Answer   closing"
		}
		return "Answer"
	case *wire.Records:
		var keys []string
		for _, r := range m.Records {
			keys = append(keys, mark(r.Record, map[string]bool{"stub": r.Stub, "withheld": r.Withheld}))
		}
		return "Records  " + list(keys)
	case *wire.End:
		text := fmt.Sprintf("End      applied %d, held %d", m.Applied, m.Held)
		if m.Collectable > 0 {
			text += fmt.Sprintf(", %d collectable", m.Collectable)
		}
		for _, r := range m.Refusals {
			text += fmt.Sprintf(", refused %s (%s)", s.keys[r.Index], r.Reason)
		}
		return text
	case *wire.Hashes:
		if len(m.Hashes) == bits.OnesCount64(m.Groups) {
			return fmt.Sprintf("Hashes   of %d groups", len(m.Hashes))
		}
		return fmt.Sprintf("Hashes   of the ranges of %d groups", bits.OnesCount64(m.Groups))
	case *wire.Listing:
		return fmt.Sprintf("Listing  %d ranges, %d left, %d marks, of %d records", len(m.Ranges), len(m.Left), m.Marks, m.Sum.Records)
	case *wire.Marks:
		var keys []string
		for _, mark := range m.Marks {
			key, known := s.keys[mark.Index]
			if !known {
				key = "?"
			}
			keys = append(keys, key)
		}
		return "Marks    " + list(keys)
	case *wire.Heads:
		return fmt.Sprintf("Heads    %d asked for", m.Count)
	case *wire.Refuse:
		return strings.TrimSpace(fmt.Sprintf("Refuse   code %d %s%s", m.Code, bytes.Join(m.Statements, []byte(" ")), m.Text))
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "*wire.")
}

// mark is a key with what is to be said of its record.
func mark(r dbadapter.Record, of map[string]bool) string {
	if r.Deleted {
		return string(r.Key) + " (deleted)"
	}
	for word, so := range of {
		if so {
			return string(r.Key) + " (" + word + ")"
		}
	}
	return string(r.Key)
}

// list names some things, sorted: messages have them in the order of their
// hashes.
func list(keys []string) string {
	slices.Sort(keys)
	if n := len(keys); n > 6 {
		return fmt.Sprintf("%s … %d in all", strings.Join(keys[:4], " "), n)
	}
	return strings.Join(keys, " ")
}
