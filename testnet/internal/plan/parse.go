package plan

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrText: the text is no plan. The message names the line and says what it
// should be.
var ErrText = errors.New("the scenario cannot be read")

// Parse reads a plan.
func Parse(text string) (Plan, error) {
	p := &parser{seen: map[string]bool{}}
	p.plan = Plan{Nodes: DefaultNodes, Seed: 1, Skew: DefaultSkew, Settle: DefaultSettle}
	if len(text) > MaxText {
		return Plan{}, fmt.Errorf("%w: it has %d bytes; a scenario has at most %d", ErrText, len(text), MaxText)
	}
	for n, line := range strings.Split(text, "\n") {
		if err := p.line(strings.TrimSpace(line)); err != nil {
			return Plan{}, fmt.Errorf("%w: line %d: %w", ErrText, n+1, err)
		}
	}
	return p.plan, nil
}

// parser is the state after some lines.
type parser struct {
	plan    Plan
	begun   bool // a line that is no comment has come
	settled bool // an event or an expectation has come: nodes are counted
	seen    map[string]bool
	sum     cost
}

func (p *parser) line(line string) error {
	switch {
	case line == "":
		return nil
	case len(line) > MaxLine:
		return fmt.Errorf("it has %d bytes; a line has at most %d", len(line), MaxLine)
	case !utf8.ValidString(line) || strings.ContainsFunc(line, unprintable):
		return errors.New("it holds bytes that are no text; write a value's as in \"\\x00\"")
	case line[0] == '#':
		if !p.begun {
			p.plan.Prose = append(p.plan.Prose, strings.TrimPrefix(line[1:], " "))
		}
		return nil
	}
	p.begun = true
	word, rest := cutWord(line)
	switch word {
	case "at":
		p.settled = true
		return p.event(rest)
	case "expect":
		p.settled = true
		return p.expect(rest)
	}
	return p.setting(word, rest)
}

func unprintable(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }

// event reads a line after its "at".
func (p *parser) event(rest string) error {
	e, err := parseEvent(rest)
	if err != nil {
		return err
	}
	if err := e.check(p.plan.Nodes); err != nil {
		return err
	}
	if err := e.checkShards(&p.plan); err != nil {
		return err
	}
	if n := len(p.plan.Events); n > 0 && e.At < p.plan.Events[n-1].At {
		return fmt.Errorf("%s comes after %s; events stand in order of time", span(e.At), span(p.plan.Events[n-1].At))
	}
	if err := p.sum.add(&e); err != nil {
		return err
	}
	p.plan.Events = append(p.plan.Events, e)
	return nil
}

// setting reads a line that is no event.
func (p *parser) setting(word, rest string) error {
	all := settings(&p.plan)
	f := find(all, word)
	switch {
	case f == nil:
		return fmt.Errorf("unknown word %q; a line begins with #, at, expect, %s", word, names(all))
	case word != settle && p.settled:
		return fmt.Errorf("%q stands below an event or an expectation; but for settle, settings stand above these", word)
	case p.seen[word]:
		return fmt.Errorf("%q stands here for the second time; a setting stands once", word)
	}
	p.seen[word] = true
	return f.read(rest)
}

func (p *parser) expect(rest string) error {
	x := &p.plan.Expect
	word, rest := cutWord(rest)
	switch word {
	case "converged":
		if rest != "" {
			return fmt.Errorf("%q follows \"converged\"; it stands alone", rest)
		}
		p.seen["converged"] = true
	case "violation":
		if x.Violation != "" {
			return errors.New("a violation is expected already; a run shows one")
		}
		x.Violation = rest
		if err := checkWord("rule", rest); err != nil {
			return err
		}
	case "corrupt":
		n, err := number("node", rest, 0, p.plan.Nodes-1)
		if err != nil {
			return err
		}
		x.Corrupt = with(x.Corrupt, n)
	case "cause":
		if rest == "" {
			return errors.New("the cause is missing, as in expect cause declined here: floor")
		}
		x.Causes = with(x.Causes, rest)
	case "refused":
		r, err := oneOf("reason", rest, Refusals())
		if err != nil {
			return err
		}
		x.Refused = with(x.Refused, r)
	default:
		return fmt.Errorf("unknown expectation %q; it is one of cause, converged, corrupt, refused, violation", word)
	}
	if p.seen["converged"] && x.Violation != "" {
		return errors.New("a run converges, or breaks a rule; not both")
	}
	return nil
}

// Validate checks a plan that was not read from a text.
func (p *Plan) Validate() error {
	_, err := Parse(p.String())
	return err
}
