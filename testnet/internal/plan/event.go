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

// String is the line of an event.
func (e *Event) String() string {
	line := "at " + span(e.At) + " " + e.Verb.String()
	for _, o := range e.operands() {
		if text := o.print(e); text != "" {
			line += " " + text
		}
	}
	return line
}

// operand is a part of a line behind its verb: a field of the event.
type operand struct {
	example string // for error messages; empty: it may be left out
	// last: it stands at the end of the line, and is taken off there.
	last  bool
	read  func(e *Event, rest string) (left string, err error)
	print func(e *Event) string // empty: it is left out
}

// word is an operand of one word.
func word(example string, of func(e *Event) field) *operand {
	return &operand{example: example, read: func(e *Event, rest string) (string, error) {
		word, left := cutWord(rest)
		return left, of(e).read(word)
	}, print: func(e *Event) string {
		text, _ := of(e).print()
		return text
	}}
}

// all is an operand that takes the rest of a line.
func all(example string, read func(e *Event, rest string) error, print func(e *Event) string) *operand {
	return &operand{example: example, read: func(e *Event, rest string) (string, error) { return "", read(e, rest) }, print: print}
}

// tail is an operand of two words at the end of a line, the first of them fixed. A last word
// that ends with a quote belongs to a quoted value, and is no operand.
func tail(fixed, example string, of func(e *Event) field) *operand {
	return &operand{example: example, last: true, read: func(e *Event, rest string) (string, error) {
		before, last := cutLastWord(rest)
		before, word := cutLastWord(before)
		switch {
		case word == fixed && !strings.HasSuffix(last, `"`):
			return before, of(e).read(last)
		case example != "":
			return "", fmt.Errorf("want %q and a time at the end", fixed)
		}
		return rest, nil
	}, print: func(e *Event) string {
		text, there := of(e).print()
		if !there {
			return ""
		}
		return fixed + " " + text
	}}
}

var (
	theNode = word("2", func(e *Event) field { return counted("node", &e.Node, 0, MaxNodes-1) })
	// twoNodes may be one and the same.
	twoNodes = word("0>2", linkOf)
	theLink  = word("0>1", func(e *Event) field {
		f := linkOf(e)
		return field{f.name, func(text string) error {
			if err := f.read(text); err != nil || e.Node != e.Peer {
				return err
			}
			return fmt.Errorf("the link %d>%d leads from a node to itself", e.Node, e.Peer)
		}, f.print}
	})
	theGroups = word("0,1|2,3", func(e *Event) field {
		return value("groups", &e.Key, groups, func(text string) string { return text })
	})

	theKey     = word("key7", func(e *Event) field { return named("key", "key", &e.Key) })
	theProgram = word("w", func(e *Event) field { return named("program", "program", &e.Key) })
	theRole    = word("write", func(e *Event) field { return text("role", &e.Key, checkRole) })
	someRole   = word("", func(e *Event) field {
		return text("role", &e.Key, func(text string) error {
			if text == "" {
				return nil
			}
			return checkRole(text)
		})
	})
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
	theSizes   = word("100B", func(e *Event) field { return sized("size", &e.Size) })
	theCount   = word("40", func(e *Event) field { return counted("count", &e.Amount, 1, MaxBatch) })
	theMembers = word("2", func(e *Event) field { return counted("count", &e.Amount, 0, MaxNodes) })
	theBit     = word("1000", func(e *Event) field { return counted("bit", &e.Amount, 0, math.MaxInt) })
	theShare   = word("0.05", func(e *Event) field {
		return value("loss", &e.Amount, func(text string) (int64, error) {
			f, err := probability("loss", text)
			amount := math.Round(f * 1000)
			if err == nil && math.Abs(f*1000-amount) > 1e-9 {
				err = fmt.Errorf("loss %q: want steps of 0.001", text)
			}
			return int64(amount), err
		}, func(amount int64) string { return share(float64(amount) / 1000) })
	})
	theSkew = word("-90s", func(e *Event) field {
		return value("skew", &e.Amount, func(text string) (int64, error) {
			d, err := duration("skew", text, -MaxTime, MaxTime)
			if err == nil && d%time.Millisecond != 0 {
				err = fmt.Errorf("skew %q: want whole milliseconds", text)
			}
			return d.Milliseconds(), err
		}, func(amount int64) string {
			text := span(time.Duration(amount) * time.Millisecond)
			if amount < 0 {
				return text
			}
			return "+" + text
		})
	})
	theStep = word("apply", func(e *Event) field {
		return value("step", &e.Step, func(text string) (reconcile.Step, error) {
			for _, s := range reconcile.Steps() {
				if s.String() == text {
					return s, nil
				}
			}
			return 0, fmt.Errorf("unknown step %q; the steps are %s", text, join(reconcile.Steps()))
		}, reconcile.Step.String)
	})
	theWatching = all("from=start prefix=k1 pace=2s", func(e *Event, rest string) error {
		if rest == "" {
			return nil
		}
		return readParts("watch", rest, e.Watching.fields())
	}, func(e *Event) string { return printParts(e.Watching.fields()) })
	theRandom = all("writes=200 keys=50 faults=20", func(e *Event, rest string) error {
		return readParts("random", rest, e.Random.fields())
	}, func(e *Event) string { return printParts(e.Random.fields()) })

	forTime = tail("for", "for 3s", func(e *Event) field { return lasting("for", &e.For, time.Millisecond, MaxTime) })
	byTime  = tail("by", "by 3s", func(e *Event) field { return lasting("by", &e.For, time.Millisecond, MaxTime) })
	// anAck is at which level something is written: "ack one", "ack 2".
	anAck = tail("ack", "", func(e *Event) field {
		return text("ack", &e.Ack, func(text string) error {
			if slices.Contains(levels, text) {
				return nil
			}
			_, err := number("ack", text, 1, placement.MaxReplicas)
			return err
		})
	})
	// aRead is at which level a key is read.
	aRead   = tail("read", "", func(e *Event) field { return choice("read", "level", &e.Read, levels) })
	atLeast = &operand{last: true, read: func(e *Event, rest string) (string, error) {
		before, last := cutLastWord(rest)
		if e.AtLeast = last == "atleast"; e.AtLeast {
			return before, nil
		}
		return rest, nil
	}, print: func(e *Event) string {
		if e.AtLeast {
			return "atleast"
		}
		return ""
	}}
	// aFinding is "expect nowhere".
	aFinding = tail("expect", "", func(e *Event) field { return choice("expect", "finding", &e.Finding, Findings()) })
)

// linkOf is a field of both nodes.
func linkOf(e *Event) field {
	return field{"link", func(text string) (err error) {
		e.Node, e.Peer, err = link(text)
		return err
	}, func() (string, bool) { return fmt.Sprintf("%d>%d", e.Node, e.Peer), true }}
}

func checkRole(word string) error {
	_, err := node.ParseRole(word)
	return err
}

// cutLastWord splits a line before its last word.
func cutLastWord(line string) (rest, word string) {
	i := strings.LastIndexAny(line, " \t") + 1
	return strings.TrimRight(line[:i], " \t"), line[i:]
}

// check holds an event to the bounds that its line alone does not keep.
func (e *Event) check(nodes int) error {
	for _, n := range e.Nodes() {
		if n < 0 || n >= nodes {
			return fmt.Errorf("node %d: there are the nodes 0 to %d; the setting \"nodes\" stands above all events", n, nodes-1)
		}
	}
	if all := e.Amount * int64(e.Size+len(e.Key)+5); e.takes(theSizes) && all > MaxBatchBytes {
		return fmt.Errorf("the batch has %d bytes; it has at most %d", all, MaxBatchBytes)
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

// Nodes are those that an event names.
func (e *Event) Nodes() (all []int) {
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
