package reconcile

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Each file of testdata/transcripts tells a sync: which side holds what, what is asked
// for, and, indented, every message on the line with its size, and how both
// sides end. The prose at the top says what it shows. -update writes the
// indented lines anew.
//
//	both|a|b KEY[*N] [= VALUE[*N] | deleted] [@SECONDS] [by WRITER]    records
//	a|b declines WRITER|nothing        the admission refuses a writer's records
//	a|b forgets                        what its peer has declined
//	a|b has the secret NAME
//	a|b heeds PROBLEM|nothing          a greeting; see problems below
//	a|b takes SECONDS for a scan
//	a|b has no memory
//	a|b does FAULT                     see faults below
//	a|b has come to KEY|nothing        by the method all, when that broke off
//	both hash coarsely                 checksums tell the time alone
//	a|b keeps cell N wrong             in the next sync
//	a|b keeps the range of KEY wrong   its digest
//	sync [pull|push] [sketch|all] [dry] [keys[=LIMIT]] [lists-may-differ] [prefix=P] [cells=N] [parts=N] [ranges=FROM-TO]
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, file, newStage(t).tell(string(text)))
		})
	}
}

// A transcript that is not what happens is noticed, wherever it is wrong.
func TestWrongTranscriptsDiffer(t *testing.T) {
	text, err := os.ReadFile("testdata/transcripts/one-round.txt")
	if err != nil {
		t.Fatal(err)
	}
	right := string(text)
	if newStage(t).tell(right) != right {
		t.Fatal("the transcript is not what happens")
	}
	lines := strings.SplitAfter(right, "\n")
	for n, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		missing := strings.Join(slices.Delete(slices.Clone(lines), n, n+1), "")
		other := strings.Replace(right, line, "    not "+strings.TrimSpace(line)+"\n", 1)
		for _, wrong := range []string{missing, other} {
			if newStage(t).tell(wrong) == wrong {
				t.Errorf("passes, though line %d is wrong:\n%s", n+1, wrong)
			}
		}
	}
}

// faults are what a side can do to a message of its own on the way; nil drops
// the line. They are for one sync.
var faults = map[string]func(*stage, wire.Message) wire.Message{
	"speak version 9": func(_ *stage, m wire.Message) wire.Message {
		if h, ok := m.(*wire.Hello); ok {
			h.Version = 9
		}
		return m
	},
	"spoil its proof": func(_ *stage, m wire.Message) wire.Message {
		switch m := m.(type) {
		case *wire.Hello:
			m.Proof[0]++
		case *wire.Welcome:
			m.Proof[0]++
		}
		return m
	},
	"forge its cells": func(s *stage, m wire.Message) wire.Message {
		spoil := func(cells []rateless.Cell) {
			for i := range cells {
				cells[i].S1 = 1 + s.rng.Uint64N(rateless.P-1)
			}
		}
		switch m := m.(type) {
		case *wire.Hello:
			spoil(m.Cells)
		case *wire.Cells:
			spoil(m.Cells)
		}
		return m
	},
	"lie about its residual": func(_ *stage, m wire.Message) wire.Message {
		switch m := m.(type) {
		case *wire.Result:
			m.Residual[0]++
		case *wire.Answer:
			m.Residual[0]++
		}
		return m
	},
	"keep its last record": func(_ *stage, m wire.Message) wire.Message {
		if r, ok := m.(*wire.Records); ok {
			r.Records = r.Records[:len(r.Records)-1]
		}
		return m
	},
	"send a malformed Result": func(s *stage, m wire.Message) wire.Message {
		if _, ok := m.(*wire.Result); ok {
			_, _, s.garbled = wire.Read(bytes.NewReader([]byte{1, 0xff}))
		}
		return m
	},
}

// problems are what a side can find in a greeting.
var problems = map[string]error{
	"a-removed-member": &RemovedError{[][]byte{[]byte("a signed statement")}},
	"another-list":     ErrListsDiffer,
	"a-twin":           ErrTwin,
}

// stage is where a transcript is played.
type stage struct {
	t       *testing.T
	sides   [2]*side
	keys    map[dbadapter.Index]string
	rng     *rand.Rand
	fault   [2]string
	kept    [2]func(*spoilt)
	scan    [2]time.Duration
	garbled error
	out     strings.Builder
}

func newStage(t *testing.T) *stage {
	return &stage{
		t: t, sides: [2]*side{newSide(t, "a", nil), newSide(t, "b", nil)},
		keys: map[dbadapter.Index]string{}, rng: rand.New(rand.NewPCG(1, 1)),
	}
}

// tell plays a transcript and returns it with what happened.
func (s *stage) tell(text string) string {
	_, script, found := strings.Cut(text, "\n\n")
	if !found {
		s.t.Fatal("a transcript begins with prose and an empty line")
	}
	s.out.WriteString(text[:len(text)-len(script)])
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		s.out.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 {
			s.do(words, strings.TrimSpace(line))
		}
	}
	return s.out.String()
}

func (s *stage) do(words []string, line string) {
	who := map[string][]int{"a": {0}, "b": {1}, "both": {0, 1}}[words[0]]
	rest := strings.TrimSpace(strings.TrimPrefix(line, words[0]))
	switch {
	case words[0] == "sync":
		s.sync(words[1:])
	case who == nil || len(words) < 2:
		s.t.Fatalf("%q: not a line of a transcript", line)
	case strings.HasPrefix(rest, "does "):
		s.fault[who[0]] = strings.TrimPrefix(rest, "does ")
		if faults[s.fault[who[0]]] == nil {
			s.t.Fatalf("%q: no such fault", line)
		}
	case words[1] == "heeds":
		problem := problems[words[2]]
		s.sides[who[0]].heeds = func(wire.Greeting) error { return problem }
	case rest == "has no memory":
		s.sides[who[0]].budget = NewBudget(0)
	case strings.HasPrefix(rest, "has the secret "):
		s.sides[who[0]].keys = DeriveKeys(dbadapter.Secret([]byte(fmt.Sprintf("%-32s", words[4]))), nil)
	case words[1] == "declines":
		s.sides[who[0]].decline(dbadapter.WriterID(s.number(words[2])))
	case words[1] == "forgets":
		s.sides[who[0]].declined.forget()
	case rest == "hash coarsely":
		for _, side := range s.sides {
			side.keys.Hasher = coarse{side.keys.Hasher}
		}
	case words[1] == "keeps" && words[2] == "cell":
		s.kept[who[0]] = func(r *spoilt) { r.flipped[s.number(words[3])] = true }
	case words[1] == "keeps":
		i := s.sides[who[0]].keys.Hasher.Index([]byte(words[5]))
		s.kept[who[0]] = func(r *spoilt) { r.ranges.Add(i, dbadapter.Sum{Digest: dbadapter.Digest{1}}) }
	case words[1] == "takes":
		s.scan[who[0]] = time.Duration(s.number(words[2])) * time.Second
	default:
		s.put(who, words[1:])
	}
}

func (s *stage) number(word string) int {
	if word == "nothing" {
		return 0
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// put writes records: KEY[*N] [= VALUE[*N] | deleted] [@SECONDS] [by WRITER].
func (s *stage) put(who []int, words []string) {
	times := func(word string) (string, int) {
		word, count, many := strings.Cut(word, "*")
		if !many {
			return word, 1
		}
		return word, s.number(count)
	}
	key, count := times(words[0])
	r := dbadapter.Record{Version: at(0)}
	for n := 1; n < len(words); n++ {
		switch word := words[n]; {
		case word == "=":
			n++
			value, length := times(words[n])
			r.Value = bytes.Repeat([]byte(value), length)
		case word == "deleted":
			r.Deleted = true
		case word == "by":
			n++
			r.Version.Writer = dbadapter.WriterID(s.number(words[n]))
		case strings.HasPrefix(word, "@"):
			r.Version.Clock = at(time.Duration(s.number(word[1:])) * time.Second).Clock
		default:
			s.t.Fatalf("%q: not a part of a record", word)
		}
	}
	for n := range count {
		r.Key = []byte(key)
		if count > 1 {
			r.Key = fmt.Appendf(nil, "%s%d", key, n+1)
		}
		for _, side := range who {
			s.keys[s.sides[side].keys.Hasher.Index(r.Key)] = string(r.Key)
			s.sides[side].put(r)
		}
	}
}

// sync runs a sync and writes down what is said.
func (s *stage) sync(words []string) {
	var o Options
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "pull", "push":
			o.Direction, _ = wire.ParseDirection(name)
		case "sketch", "all":
			o.Method, _ = wire.ParseMethod(name)
		case "dry":
			o.DryRun = true
		case "keys":
			left := math.MaxInt
			if value != "" {
				left = s.number(value)
			}
			o.Differs = func(d KeyDifference) (bool, error) {
				if left--; left < 0 {
					return false, nil
				}
				fmt.Fprintf(&s.out, "    a lists %s: %s\n", d.Key, d.Kind)
				return true, nil
			}
		case "lists-may-differ":
			o.ListsMayDiffer = true
		case "prefix":
			s.sides[0].prefix, s.sides[1].prefix = []byte(value), []byte(value)
		case "parts":
			s.sides[1].parts = int64(s.number(value))
		case "ranges":
			from, to, _ := strings.Cut(value, "-")
			o.Span = wire.Span{From: dbadapter.Range(s.number(from)), To: dbadapter.Range(s.number(to))}
		case "cells":
			o.FirstCells = s.number(value)
		default:
			s.t.Fatalf("%q: not a part of a sync", word)
		}
	}
	a, b := s.sides[0], s.sides[1]
	var clock time.Duration
	a.elapsed = func() time.Duration { return clock }
	b.elapsed = a.elapsed
	var sessions [2]*Session
	open := func(n int) Replica {
		r, _ := openSpoilt(s.sides[n], o.Span, func(r *spoilt) {
			if s.kept[n] != nil {
				s.kept[n](r)
			}
		})
		return &slow{r, &clock, s.scan[n], time.Second, 0, func() error { return sessions[n].Tick() }}
	}
	var steps [2][]string
	enter := func(n int, o Options) Options {
		o.Enter = func(step Step) { steps[n] = append(steps[n], step.String()) }
		return o
	}
	sessions[0] = Initiate(open(0), enter(0, a.options(b, o)))
	sessions[1] = Respond(func(*wire.Hello) (Replica, error) { return open(1), nil }, enter(1, b.options(a, Options{})))
	carry(s.t, sessions[0], sessions[1], &outcome{}, func(initiator bool, m wire.Message) wire.Message {
		from, to := 1, 0
		if initiator {
			from, to = 0, 1
		}
		if fault := faults[s.fault[from]]; fault != nil {
			m = fault(s, m)
		}
		if s.garbled != nil {
			fmt.Fprintf(&s.out, "    %c ▶ %c %6d B  a malformed frame\n", 'a'+from, 'a'+to, 2)
			sessions[to].Fail(s.garbled)
			s.garbled = nil
			return m
		}
		fmt.Fprintf(&s.out, "    %c ▶ %c %6d B  %s\n", 'a'+from, 'a'+to, len(wire.Append(nil, m)), s.describe(m))
		return m
	})
	for n, session := range sessions {
		s.ended(n, session)
		fmt.Fprintf(&s.out, "    %c was at %s\n", 'a'+n, strings.Join(shortened(steps[n]), ", "))
		session.Close()
	}
	a.prefix, b.prefix, s.fault, s.scan = nil, nil, [2]string{}, [2]time.Duration{}
	s.kept = [2]func(*spoilt){}
	da, na := a.state()
	if db, nb := b.state(); da == db && na == nb {
		fmt.Fprintf(&s.out, "    both hold the same %d records\n", na)
	} else {
		fmt.Fprintf(&s.out, "    a holds %d records, b %d, and they differ\n", na, nb)
	}
}
