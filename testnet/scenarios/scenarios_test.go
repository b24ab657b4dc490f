package scenarios

import (
	"os"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Each scenario parses, has the name of its file, and has a title and prose.
// Package testnet runs them all.
func TestTexts(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(All(), Found()...) {
		p, err := plan.Parse(s.Text)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if p.Name != s.Name {
			t.Errorf("%s: it calls itself %q", s.Name, p.Name)
		}
		if len(p.Prose) < 2 || s.Title != p.Prose[0] || s.Title == "" {
			t.Errorf("%s: its title is %q, its prose %q", s.Name, s.Title, p.Prose)
		}
		if names[s.Name] {
			t.Errorf("%s: there are two of that name", s.Name)
		}
		names[s.Name] = true
		for n, line := range strings.Split(s.Text, "\n") {
			if len(line) > 84 {
				t.Errorf("%s: line %d has %d bytes; people read it", s.Name, n+1, len(line))
			}
		}
		if got, ok := Find(s.Name); !ok || got != s {
			t.Errorf("%s is not found by its name", s.Name)
		}
	}
	if len(All()) < 12 {
		t.Errorf("only %d scenarios", len(All()))
	}
	if _, ok := Find("no-such"); ok {
		t.Error("a scenario was found that is not there")
	}
}

// Some scenario has each verb, and expects each refusal but those that only an
// attacker or a bug causes.
func TestExpectationsAreUsed(t *testing.T) {
	used := map[plan.Refusal]bool{}
	verbs := map[plan.Verb]bool{}
	corrupt := false
	for _, s := range All() {
		p, err := plan.Parse(s.Text)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Expect.Refused {
			used[r] = true
		}
		corrupt = corrupt || len(p.Expect.Corrupt) > 0
		for _, e := range p.Events {
			verbs[e.Verb] = true
		}
	}
	for _, r := range []plan.Refusal{"full", "future", "timeout", "version"} {
		if !used[r] {
			t.Errorf("no scenario expects %q to be refused", r)
		}
	}
	if !corrupt {
		t.Error("no scenario expects damage")
	}
	for _, v := range plan.Verbs() {
		if !verbs[v] {
			t.Errorf("no scenario has the verb %q", v)
		}
	}
}

// The README names every scenario with its title, every verb and every reason.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	has := func(what string) {
		if !strings.Contains(string(readme), what) {
			t.Errorf("the README lacks %q", what)
		}
	}
	for _, s := range All() {
		has("[" + s.Name + "](" + s.Name + ".txt) | " + s.Title + " |")
	}
	for _, v := range plan.Verbs() {
		has("`" + v.String())
	}
	for _, r := range plan.Refusals() {
		has(string(r))
	}
	for _, p := range plan.Profiles() {
		has(string(p))
	}
	_, example, _ := strings.Cut(string(readme), "```\n")
	example, _, _ = strings.Cut(example, "```")
	if p, err := plan.Parse(example); err != nil || p.String() != example {
		t.Errorf("the example is not in canonical form: %v\n%s", err, p.String())
	}
}
