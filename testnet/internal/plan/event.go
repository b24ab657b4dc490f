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
	"github.com/syncd-io/syncd/internal/placement"
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
	if err := e.readOperands(rest); err != nil {
		example := "at 1s " + name
		for _, o := range e.operands() {
			example = strings.TrimRight(example+" "+o.example, " ")
		}
		return e, fmt.Errorf("%s: %w; write it as in %q", name, err, example)
	}
	return e, nil
}

// readOperands reads what follows the verb.
func (e *Event) readOperands(rest string) (err error) {
	for _, o := range slices.Backward(e.operands()) {
		if o.last {
			if rest, err = o.read(e, rest); err != nil {
				return err
			}
		}
	}
	for _, o := range e.operands() {
		if !o.last {
			if rest, err = o.read(e, rest); err != nil {
				return err
			}
		}
	}
	if rest != "" {
		return fmt.Errorf("%q is too much", rest)
	}
	return nil
}

// String is the line of an event, without its note.
func (e *Event) String() string {
	line := "at " + span(e.At) + " " + e.Verb.String()
	for _, o := range e.operands() {
		if text := o.print(e); text != "" {
			line += " " + text
		}
	}
	return line
}

// operand is a part of a line behind its verb.
type operand struct {
	example string // for error messages; empty: it may be left out
	// last: it stands at the end of the line, and is taken off there.
	last  bool
	read  func(e *Event, rest string) (left string, err error)
	print func(e *Event) string // empty: it is left out
}

// word is an operand of one word.
func word(example string, read func(e *Event, word string) error, print func(e *Event) string) *operand {
	return &operand{example: example, read: func(e *Event, rest string) (string, error) {
		word, left := cutWord(rest)
		return left, read(e, word)
	}, print: print}
}

// all is an operand that takes the rest of a line.
func all(example string, read func(e *Event, rest string) error, print func(e *Event) string) *operand {
	return &operand{example: example, read: func(e *Event, rest string) (string, error) { return "", read(e, rest) }, print: print}
}

var (
	theNode = word("2", func(e *Event, word string) (err error) {
		e.Node, err = number("node", word, 0, MaxNodes-1)
		return err
	}, func(e *Event) string { return strconv.Itoa(e.Node) })
	// twoNodes may be one and the same.
	twoNodes = word("0>2", func(e *Event, word string) (err error) {
		e.Node, e.Peer, err = link(word)
		return err
	}, func(e *Event) string { return fmt.Sprintf("%d>%d", e.Node, e.Peer) })
	theLink = word("0>1", func(e *Event, word string) (err error) {
		if e.Node, e.Peer, err = link(word); err == nil && e.Node == e.Peer {
			err = fmt.Errorf("the link %d>%d leads from a node to itself", e.Node, e.Peer)
		}
		return err
	}, twoNodes.print)
	theGroups = word("0,1|2,3", func(e *Event, word string) (err error) {
		if e.Key, err = groups(word); err != nil {
			return err
		}
		named := slices.Sorted(slices.Values(slices.Concat(e.Groups()...)))
		if n := len(slices.Compact(slices.Clone(named))); n != len(named) {
			return fmt.Errorf("groups %q: a node stands in two of them", e.Key)
		}
		return nil
	}, keyOf)

	theKey     = word("key7", func(e *Event, word string) error { e.Key = word; return checkWord("key", word) }, keyOf)
	theProgram = word("w", func(e *Event, word string) error { e.Key = word; return checkWord("program", word) }, keyOf)
	theRole    = word("write", readRole, keyOf)
	someRole   = word("", func(e *Event, word string) error {
		if word == "" {
			return nil
		}
		return readRole(e, word)
	}, keyOf)
	theValue = all("100B", func(e *Event, rest string) (err error) {
		if !strings.HasPrefix(rest, `"`) {
			e.Size, err = byteSize("size", rest)
			return err
		}
		if e.Value, err = strconv.Unquote(rest); err != nil {
			return fmt.Errorf("value %s: want a string of Go, as in \"red\\n\"", rest)
		}
		if len(e.Value) > MaxSize {
			return fmt.Errorf("the value has %d bytes; it has at most %d", len(e.Value), MaxSize)
		}
		return nil
	}, func(e *Event) string {
		if e.Value != "" {
			return strconv.Quote(e.Value)
		}
		return size(e.Size)
	})
	theSizes = word("100B", func(e *Event, word string) (err error) {
		e.Size, err = byteSize("size", word)
		if all := e.Amount * int64(e.Size+len(e.Key)+5); all > MaxBatchBytes {
			return fmt.Errorf("the batch has %d bytes; it has at most %d", all, MaxBatchBytes)
		}
		return err
	}, func(e *Event) string { return size(e.Size) })
	theCount   = word("40", func(e *Event, word string) error { return e.count(word, 1, MaxBatch) }, amountOf)
	theMembers = word("2", func(e *Event, word string) error { return e.count(word, 0, MaxNodes) }, amountOf)
	theBit     = word("1000", func(e *Event, word string) (err error) {
		if e.Amount, err = strconv.ParseInt(word, 10, 64); err != nil || e.Amount < 0 {
			return fmt.Errorf("bit %q: want a number", word)
		}
		return nil
	}, amountOf)
	theShare = word("0.05", func(e *Event, word string) error {
		f, err := probability("loss", word)
		if err != nil {
			return err
		}
		e.Amount = int64(math.Round(f * 1000))
		if math.Abs(f*1000-float64(e.Amount)) > 1e-9 {
			return fmt.Errorf("loss %q: want steps of 0.001", word)
		}
		return nil
	}, func(e *Event) string { return share(float64(e.Amount) / 1000) })
	theSkew = word("-90s", func(e *Event, word string) error {
		d, err := duration("skew", word, -MaxTime, MaxTime)
		if err != nil {
			return err
		}
		if e.Amount = d.Milliseconds(); d%time.Millisecond != 0 {
			return fmt.Errorf("skew %q: want whole milliseconds", word)
		}
		return nil
	}, func(e *Event) string {
		if e.Amount < 0 {
			return span(time.Duration(e.Amount) * time.Millisecond)
		}
		return "+" + span(time.Duration(e.Amount)*time.Millisecond)
	})
	theStep = word("apply", func(e *Event, word string) (err error) {
		for _, s := range reconcile.Steps() {
			if s.String() == word {
				e.Step = s
				return nil
			}
		}
		return fmt.Errorf("unknown step %q; the steps are %s", word, join(reconcile.Steps()))
	}, func(e *Event) string { return e.Step.String() })
	theWatching = all("from=start prefix=k1 pace=2s", func(e *Event, rest string) error {
		if rest == "" {
			return nil
		}
		return readParts("watch", rest, e.Watching.fields())
	}, func(e *Event) string { return printParts(e.Watching.fields()) })
	theRandom = all("writes=200 keys=50 faults=20", func(e *Event, rest string) error {
		return readParts("random", rest, e.Random.fields())
	}, func(e *Event) string { return printParts(e.Random.fields()) })

	forTime = lasts("for")
	byTime  = lasts("by")
	// anAck is at which level something is written: "ack one", "ack 2". The last words of a
	// quoted value end with its quote, and are no level.
	anAck = &operand{last: true, read: func(e *Event, rest string) (string, error) {
		before, word, last := cutLastWords(rest)
		n, err := strconv.Atoi(last)
		if word != "ack" || !slices.Contains(levels, last) && (err != nil || n < 1 || n > placement.MaxReplicas) {
			return rest, nil
		}
		e.Ack = last
		return before, nil
	}, print: func(e *Event) string { return unlessEmpty("ack ", e.Ack) }}
	// aRead is at which level a key is read, "read one", and "atleast" behind that.
	aRead = &operand{last: true, read: func(e *Event, rest string) (string, error) {
		if before, last := cutLastWord(rest); last == "atleast" {
			e.AtLeast, rest = true, before
		}
		before, word, last := cutLastWords(rest)
		if word != "read" || !slices.Contains(levels, last) {
			return rest, nil
		}
		e.Read = last
		return before, nil
	}, print: func(e *Event) string {
		text := unlessEmpty("read ", e.Read)
		if e.AtLeast {
			text = strings.TrimLeft(text+" atleast", " ")
		}
		return text
	}}
	// aFinding is "expect nowhere".
	aFinding = &operand{last: true, read: func(e *Event, rest string) (_ string, err error) {
		before, word, last := cutLastWords(rest)
		if word != "expect" {
			return rest, nil
		}
		e.Finding, err = oneOf("finding", last, Findings())
		return before, err
	}, print: func(e *Event) string { return unlessEmpty("expect ", string(e.Finding)) }}
)

// lasts is an operand "for 3s" at the end of a line.
func lasts(preposition string) *operand {
	return &operand{example: preposition + " 3s", last: true, read: func(e *Event, rest string) (_ string, err error) {
		before, word, last := cutLastWords(rest)
		if word != preposition {
			return "", fmt.Errorf("want %q and a time at the end", preposition)
		}
		e.For, err = duration(preposition, last, time.Millisecond, MaxTime)
		return before, err
	}, print: func(e *Event) string { return preposition + " " + span(e.For) }}
}

func keyOf(e *Event) string    { return e.Key }
func amountOf(e *Event) string { return strconv.FormatInt(e.Amount, 10) }

func readRole(e *Event, word string) error {
	e.Key = word
	_, err := node.ParseRole(word)
	return err
}

func (e *Event) count(word string, least, most int) error {
	n, err := number("count", word, least, most)
	e.Amount = int64(n)
	return err
}

func unlessEmpty(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// cutLastWord splits a line before its last word, cutLastWords before its last two.
func cutLastWord(line string) (rest, word string) {
	i := strings.LastIndexAny(line, " \t") + 1
	return strings.TrimRight(line[:i], " \t"), line[i:]
}

func cutLastWords(line string) (rest, word, last string) {
	rest, last = cutLastWord(line)
	rest, word = cutLastWord(rest)
	return rest, word, last
}

// check holds an event to the bounds that its line alone does not keep.
func (e *Event) check(nodes int) error {
	for _, n := range e.nodes() {
		if n < 0 || n >= nodes {
			return fmt.Errorf("node %d: there are the nodes 0 to %d; the setting \"nodes\" stands above all events", n, nodes-1)
		}
	}
	if r := &e.Random; r.Syncs+r.Members+r.Asks > 0 && nodes == 1 {
		return errors.New("a sync, a question, or a change of the members, needs two nodes")
	}
	return nil
}

// names reports which of the nodes in its fields an event is of: Node, and Peer, too.
func (e *Event) names() (node, peer bool) {
	peer = e.takes(theLink) || e.takes(twoNodes)
	return peer || e.takes(theNode), peer
}

// nodes are those that an event names.
func (e *Event) nodes() (all []int) {
	if e.takes(theGroups) {
		return slices.Concat(e.Groups()...)
	}
	node, peer := e.names()
	if node {
		all = append(all, e.Node)
	}
	if peer {
		all = append(all, e.Peer)
	}
	return all
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
	switch {
	case e.Verb == Expand:
		r := &e.Random
		n = r.Writes + r.Syncs + r.Members + r.Gets + eventsPerAsk*r.Asks + eventsPerWatch*r.Watches + eventsPerFault*r.Faults
		data = int64(r.Writes) * int64(r.size()+record)
		c.largest = max(c.largest, int64(r.size()))
	case e.takes(theValue) || e.takes(theSizes):
		c.largest = max(c.largest, int64(len(e.Value)+e.Size))
	case e.Verb == Touch:
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
