//go:build linux

package systemtest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// op is one request for a key at a daemon, and how it ended. An item of a batch is one.
type op struct {
	Kind, Level, Key, At string
	Start, End           time.Duration
	// Value is what was written, or read. Each write has a value of its own.
	Value, Version string
	// If is the condition of a write, or what a read is to be at least: a version, or ifAbsent.
	If   string
	Exit int
	Err  string `json:",omitempty"`
}

// ifAbsent is the condition that the key holds nothing.
const ifAbsent = "ifAbsent"

// unanswered is the exit code of a request whose daemon died or hung.
const unanswered = -1

func (o *op) writes() bool { return o.Kind != "get" }

// majority reports that the request, if it succeeded, has met a majority.
func (o *op) majority() bool { return o.Level != "one" }

// history is what users of a cluster asked for, and what was listed to a person.
type history struct {
	mu     sync.Mutex // guards what follows
	all    []*op
	listed map[[2]string]bool // key and version, in conflicts or rejected
}

func (h *history) add(o ...*op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o...)
}

// save writes all to a file, a line each.
func (h *history) save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := json.NewEncoder(f)
	for _, o := range h.all {
		if err := lines.Encode(o); err != nil {
			return err
		}
	}
	for l := range h.listed {
		if err := lines.Encode(op{Kind: "listed", Key: l[0], Version: l[1]}); err != nil {
			return err
		}
	}
	return f.Close()
}

// check says what breaks the promises of docs/SHARDS.md. Each write at a level of majorities that
// was acknowledged is the floor of what begins later.
func (h *history) check() (wrong []string) {
	of := map[string][]*op{}
	for _, o := range h.all {
		of[o.Key] = append(of[o.Key], o)
	}
	for _, all := range of {
		wrong = append(wrong, h.checkKey(all)...)
	}
	slices.Sort(wrong)
	return wrong
}

func (h *history) checkKey(all []*op) (wrong []string) {
	var acked []*op
	floors := []string{""}
	written := map[string]*op{}   // by value
	values := map[string]string{} // by version
	onto := map[string][]*op{}    // conditional writes, by their condition
	deletions := []*op(nil)
	slices.SortFunc(all, func(a, b *op) int { return int(a.End - b.End) })
	for _, o := range all {
		if !o.writes() {
			continue
		}
		written[o.Value] = o
		if o.Value == "" {
			deletions = append(deletions, o)
		}
		if o.Exit == 0 && o.majority() {
			acked = append(acked, o)
			floors = append(floors, max(floors[len(floors)-1], o.Version))
		}
	}
	for _, o := range all {
		bad := func(format string, a ...any) {
			wrong = append(wrong, fmt.Sprintf("%s: %s; %+v", o.Key, fmt.Sprintf(format, a...), *o))
		}
		floor := floors[sort.Search(len(acked), func(i int) bool { return acked[i].End >= o.Start })]
		read := !o.writes() && (o.Exit == 0 || o.Exit == 4)
		if o.Exit == 0 && o.Version != "" {
			if before, ok := values[o.Version]; ok && before != o.Value {
				bad("this version had another value, %q", before)
			}
			values[o.Version] = o.Value
		}
		if w := written[o.Value]; !o.writes() && o.Exit == 0 && (w == nil || w.Start > o.End) {
			bad("nobody had written this value")
		}
		switch {
		case read && o.If != "" && o.Version != "" && o.Version < o.If:
			bad("it is older than asked for")
		case read && !o.majority():
		case read && o.Version != "" && o.Version < floor:
			bad("it is older than %s, which was acknowledged before", floor)
		case read && o.Version == "" && floor != "" && !slices.ContainsFunc(deletions, func(d *op) bool {
			return d.Start < o.End && (d.Version == "" || d.Version >= floor)
		}):
			bad("nothing is read, and %s was acknowledged before", floor)
		case o.writes() && o.Exit == 0 && o.majority() && o.Version <= floor:
			bad("it is not later than %s, which was acknowledged before", floor)
		case o.writes() && o.Exit == 0 && o.If != "" && o.If != ifAbsent && floor > o.If:
			bad("the condition held, and %s was acknowledged before", floor)
		}
		if o.writes() && o.Exit == 0 && o.If != "" {
			onto[o.If] = append(onto[o.If], o)
		}
	}
	for _, same := range onto {
		slices.SortFunc(same, func(a, b *op) int { return strings.Compare(b.Version, a.Version) })
		for _, o := range same[1:] {
			if o.If != ifAbsent && !h.listed[[2]string{o.Key, o.Version}] {
				wrong = append(wrong, fmt.Sprintf("%s: the condition held of %+v, too; this one is not listed: %+v", o.Key, *same[0], *o))
			}
		}
	}
	return wrong
}

// ends counts how requests of each kind and level ended, by their exit codes.
func (h *history) ends() map[string]map[int]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]map[int]int{}
	for _, o := range h.all {
		what := o.Kind + " " + o.Level
		if out[what] == nil {
			out[what] = map[int]int{}
		}
		out[what][o.Exit]++
	}
	return out
}
