package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
)

// parseEvent reads "TIME VERB OPERANDS".
func parseEvent(rest string) (e Event, err error) {
	at, rest := cutWord(rest)
	if e.At, err = duration("time", at, 0, MaxTime); err != nil {
		return e, err
	}
	name, rest := cutWord(rest)
	for _, v := range Verbs() {
		if v.String() == name {
			e.Verb = v
		}
	}
	if e.Verb == 0 {
		return e, fmt.Errorf("unknown verb %q; the verbs are %s", name, join(Verbs()))
	}
	if err := e.operands(rest); err != nil {
		return e, fmt.Errorf("%s: %w; write it as in %q", name, err, examples[verbTable[e.Verb].form])
	}
	return e, nil
}

// examples of the forms, for error messages.
var examples = map[operands]string{
	formNone:    "at 1s healall",
	formNode:    "at 1s crash 2",
	formFor:     "at 1s freeze 2 for 3s",
	formLink:    "at 1s cut 0>1",
	formLinkFor: "at 1s wait 0>1 for 30s",
	formKeyFor:  "at 1s wait-key 0 key7 2 for 30s",
	formPrefix:  "at 1s sync-prefix 0>1 k1",
	formLoss:    "at 1s loss 0>1 0.05",
	formJoin:    "at 1s join 1>0 admin",
	formMember:  "at 1s remove 0>2",
	formRole:    "at 1s role 0>2 read",
	formTerm:    "at 1s term 0>2 write for 5m",
	formPut:     "at 1s put 2 key7 100B",
	formPutFor:  "at 1s expiring 2 key7 100B for 30s",
	formPutBy:   "at 1s backdate 2 key7 100B by 1h",
	formDel:     "at 1s del 2 key7",
	formBatch:   "at 1s batch 2 k 40 100B",
	formStep:    "at 1s crash-at 2 apply",
	formSkew:    "at 1s skew 2 -90s",
	formGroups:  "at 1s partition 0,1|2,3",
	formFlip:    "at 1s flip 2 1000",
	formWatch:   "at 1s watch 2 w from=start prefix=k1 pace=2s",
	formRandom:  "at 1s random writes=200 keys=50 faults=20 for 60s",
}

// operands reads what follows the verb.
func (e *Event) operands(rest string) (err error) {
	form := verbTable[e.Verb].form
	if rest, err = e.cutFinding(rest); err != nil {
		return err
	}
	rest = e.cutLevel(rest)
	if word := form.span(); word != "" {
		var last string
		if rest, last, err = cutSpan(rest, word); err != nil {
			return err
		}
		if e.For, err = duration(word, last, time.Millisecond, MaxTime); err != nil {
			return err
		}
	}
	switch form {
	case formNone:
		return end(rest)
	case formRandom:
		e.Random, err = parseRandom(rest)
		return err
	case formGroups:
		e.Key, err = groups(rest)
		return err
	}
	if form.links() {
		word, rest := cutWord(rest)
		if e.Node, e.Peer, err = link(word); err != nil {
			return err
		}
		switch form {
		case formLoss:
			return e.loss(rest)
		case formPrefix, formJoin, formRole, formTerm:
			e.Key, rest = cutWord(rest)
		}
		return end(rest)
	}
	word, rest := cutWord(rest)
	if e.Node, err = number("node", word, 0, MaxNodes-1); err != nil {
		return err
	}
	switch form {
	case formSkew:
		return e.skew(rest)
	case formFlip:
		if e.Amount, err = strconv.ParseInt(rest, 10, 64); err != nil || e.Amount < 0 {
			return fmt.Errorf("bit %q: want a number", rest)
		}
		return nil
	case formStep:
		for _, s := range reconcile.Steps() {
			if s.String() == rest {
				e.Step = s
				return nil
			}
		}
		return fmt.Errorf("unknown step %q; the steps are %s", rest, join(reconcile.Steps()))
	case formWatch:
		e.Key, rest = cutWord(rest)
		e.Watching, err = parseWatching(rest)
		return err
	case formPut, formPutFor, formPutBy, formDel, formBatch, formKeyFor:
		e.Key, rest = cutWord(rest)
		if least, most := 1, MaxBatch; form == formBatch || form == formKeyFor {
			if form == formKeyFor {
				least, most = 0, MaxNodes
			}
			word, rest = cutWord(rest)
			count, err := number("count", word, least, most)
			if err != nil {
				return err
			}
			e.Amount = int64(count)
		}
		if form != formDel && form != formKeyFor {
			return e.readValue(rest)
		}
	}
	return end(rest)
}

// readValue reads "100B", or a quoted string.
func (e *Event) readValue(rest string) (err error) {
	if !verbTable[e.Verb].form.puts() || !strings.HasPrefix(rest, `"`) {
		e.Size, err = byteSize("size", rest)
		return err
	}
	if e.Value, err = strconv.Unquote(rest); err != nil {
		return fmt.Errorf("value %s: want a string of Go, as in \"red\\n\"", rest)
	}
	return nil
}

func (e *Event) loss(rest string) error {
	f, err := probability("loss", rest)
	if err != nil {
		return err
	}
	e.Amount = int64(math.Round(f * 1000))
	if math.Abs(f*1000-float64(e.Amount)) > 1e-9 {
		return fmt.Errorf("loss %q: want steps of 0.001", rest)
	}
	return nil
}

func (e *Event) skew(rest string) error {
	d, err := duration("skew", rest, -MaxTime, MaxTime)
	if err != nil {
		return err
	}
	if d%time.Millisecond != 0 {
		return fmt.Errorf("skew %q: want whole milliseconds", rest)
	}
	e.Amount = d.Milliseconds()
	return nil
}

// cutSpan splits "… for 3s" in two.
func cutSpan(rest, word string) (before, last string, err error) {
	before, last = cutLastWord(rest)
	if before, found := cutLastWord(before); found == word {
		return before, last, nil
	}
	return "", "", fmt.Errorf("want %q and a time at the end", word)
}

// cutLastWord splits a line before its last word.
func cutLastWord(line string) (rest, word string) {
	i := strings.LastIndexAny(line, " \t") + 1
	return strings.TrimRight(line[:i], " \t"), line[i:]
}

func end(rest string) error {
	if rest != "" {
		return fmt.Errorf("%q is too much", rest)
	}
	return nil
}

// check holds an event to the bounds that its form alone does not keep.
func (e *Event) check(nodes int) error {
	f := verbTable[e.Verb].form
	for _, n := range e.nodes() {
		if n < 0 || n >= nodes {
			return fmt.Errorf("node %d: there are the nodes 0 to %d; the setting \"nodes\" stands above all events", n, nodes-1)
		}
	}
	if f.roles() || f == formJoin && e.Key != "" {
		if _, err := node.ParseRole(e.Key); err != nil {
			return err
		}
	}
	if e.linked() && e.Node == e.Peer {
		return fmt.Errorf("the link %d>%d leads from a node to itself", e.Node, e.Peer)
	}
	switch f {
	case formPrefix, formKeyFor:
		return checkWord("key", e.Key)
	case formWatch:
		if e.Watching.Prefix != "" {
			if err := checkWord("prefix", e.Watching.Prefix); err != nil {
				return err
			}
		}
		return checkWord("program", e.Key)
	case formGroups:
		named := e.nodes()
		slices.Sort(named)
		if n := len(slices.Compact(slices.Clone(named))); n != len(named) {
			return fmt.Errorf("groups %q: a node stands in two of them", e.Key)
		}
	case formPut, formPutFor, formPutBy, formDel, formBatch:
		if err := checkWord("key", e.Key); err != nil {
			return err
		}
		if len(e.Value) > MaxSize {
			return fmt.Errorf("the value has %d bytes; it has at most %d", len(e.Value), MaxSize)
		}
		if all := e.Amount * int64(e.Size+len(e.Key)+5); all > MaxBatchBytes {
			return fmt.Errorf("the batch has %d bytes; it has at most %d", all, MaxBatchBytes)
		}
	case formRandom:
		r := &e.Random
		switch {
		case r.Profile != "" && !slices.Contains(Profiles(), r.Profile):
			return fmt.Errorf("unknown profile %q; the profiles are %s", r.Profile, join(Profiles()))
		case r.Syncs+r.Members+r.Asks > 0 && nodes == 1:
			return errors.New("a sync, a question, or a change of the members, needs two nodes")
		}
	}
	return nil
}

// nodes are those that an event names.
func (e *Event) nodes() []int {
	switch f := verbTable[e.Verb].form; {
	case f == formNone || f == formRandom:
		return nil
	case f.links():
		return []int{e.Node, e.Peer}
	case f == formGroups:
		return slices.Concat(e.Groups()...)
	}
	return []int{e.Node}
}

// cost is the sum of what events ask for.
type cost struct {
	events  int
	bytes   int64
	largest int64 // value so far, which a touch may write again
}

func (c *cost) add(e *Event) error {
	const record = 64 // what a record takes beside its value, about
	n, data := 1, int64(len(e.Value)+e.Size+record)*max(e.Amount, 1)
	switch e.Verb {
	case Expand:
		r := &e.Random
		n = r.Writes + r.Syncs + r.Members + r.Gets + eventsPerAsk*r.Asks + eventsPerWatch*r.Watches + eventsPerFault*r.Faults
		data = int64(r.Writes) * int64(r.size()+record)
		c.largest = max(c.largest, int64(r.size()))
	case Put, PutIf, Dated, Expiring, Backdate, Batch, Import:
		c.largest = max(c.largest, int64(len(e.Value)+e.Size))
	case Touch:
		data = c.largest + record
	default:
		data = record
	}
	c.events += n
	c.bytes += data
	switch {
	case c.events > MaxEvents:
		return fmt.Errorf("there are more than %d events up to here, those of random lines counted", MaxEvents)
	case c.bytes > MaxBytes:
		return fmt.Errorf("the values up to here have more than %d bytes", MaxBytes)
	}
	return nil
}
