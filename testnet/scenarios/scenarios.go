// Package scenarios holds named runs of a test network as short texts. Each has prose
// on the events and the expected outcome, then commands. testnet.Run reads them;
// README.md describes the commands.
package scenarios

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.txt found
var files embed.FS

// Scenario is one text.
type Scenario struct {
	// Name is that of its file.
	Name string `json:"name"`
	// Title is the first line of its prose.
	Title string `json:"title"`
	Text  string `json:"text,omitempty"`
}

// All are the scenarios that tell a story, by name.
func All() []Scenario { return in(".") }

// Found are runs that once failed, shrunk and kept: see found/README.md.
func Found() []Scenario { return in("found") }

// Find is the scenario of that name, of either kind.
func Find(name string) (Scenario, bool) {
	for _, s := range append(All(), Found()...) {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

func in(folder string) (all []Scenario) {
	names, err := fs.Glob(files, path.Join(folder, "*.txt"))
	if err != nil {
		panic(err) // the pattern is ours
	}
	for _, file := range names {
		text, err := files.ReadFile(file)
		if err != nil {
			panic(err) // it is part of the program
		}
		all = append(all, Of(strings.TrimSuffix(path.Base(file), ".txt"), string(text)))
	}
	return all
}

// Of is a scenario of any text.
func Of(name, text string) Scenario {
	s := Scenario{Name: name, Text: text}
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "#") {
		s.Title = strings.TrimSpace(first[1:])
	}
	return s
}
