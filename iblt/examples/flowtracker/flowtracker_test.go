package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func TestLossyLog(t *testing.T) {
	log, err := os.Open("testdata/lossy.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out strings.Builder
	if err := run([]string{"--flows", "20"}, log, &out); err != nil {
		t.Fatal(err)
	}
	const want = `2 open
  192.0.2.1:4711 → 198.51.100.7:443
  192.0.2.2:5000 → 198.51.100.7:80 (2 times)
2 open
  192.0.2.2:5000 → 198.51.100.7:80 (2 times)
  192.0.2.3:7000 → 203.0.113.5:22
  ended, start not seen: 192.0.2.9:6000 → 203.0.113.5:22
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

// TestSourceTwice: two flows that share source and port of destination hide
// each other and no third, and the list says that it lacks some.
func TestSourceTwice(t *testing.T) {
	const log = `start 192.0.2.1:4711 198.51.100.7:443
start 192.0.2.1:4711 198.51.100.8:443
start 192.0.2.2:4711 198.51.100.7:443
list
end 192.0.2.1:4711 198.51.100.8:443
`
	var out strings.Builder
	if err := run(nil, strings.NewReader(log), &out); err != nil {
		t.Fatal(err)
	}
	const want = `incomplete, 1 open among others
  192.0.2.2:4711 → 198.51.100.7:443
2 open
  192.0.2.1:4711 → 198.51.100.7:443
  192.0.2.2:4711 → 198.51.100.7:443
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestBadLines(t *testing.T) {
	for line, want := range map[string]string{
		"start 192.0.2.1:1":                 "is not \"start FROM TO\"",
		"start 192.0.2.1 192.0.2.2:1":       "IPv4 address with a port",
		"start [2001:db8::1]:1 192.0.2.2:1": "IPv4 address with a port",
		"stop 192.0.2.1:1 192.0.2.2:1":      "neither",
	} {
		err := run(nil, strings.NewReader("list\n"+line), new(strings.Builder))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := run([]string{"-h"}, strings.NewReader("stop"), new(strings.Builder)); err != nil {
		t.Errorf("-h: %v", err)
	}
	if err := run([]string{"--flows", "-1"}, strings.NewReader(""), new(strings.Builder)); err == nil {
		t.Error("-1 flows are accepted")
	}
}

// TestOverloadPasses: twenty times as many flows as the table can list come and
// go, beside some that stay; with those the lists are complete before and after.
func TestOverloadPasses(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	flow := func() Flow { return flowOf(r.Uint64(), uint64(r.Uint32())) }
	tracker, err := NewTracker(500, seed)
	if err != nil {
		t.Fatal(err)
	}
	staying := map[Flow]bool{}
	for range 400 {
		f := flow()
		staying[f] = true
		tracker.Start(f)
	}
	check := func(when string) {
		t.Helper()
		open, orphaned, complete := tracker.List()
		if !complete || len(open) != len(staying) || len(orphaned) != 0 {
			t.Fatalf("%s: %d open, %d orphaned, complete %v", when, len(open), len(orphaned), complete)
		}
		for _, f := range open {
			if !staying[f.Flow] || f.Times != 1 {
				t.Fatalf("%s: %v is open", when, f)
			}
		}
	}
	check("before")
	var spike []Flow
	for range 10_000 {
		spike = append(spike, flow())
		tracker.Start(spike[len(spike)-1])
	}
	if _, _, complete := tracker.List(); complete {
		t.Error("a table for 500 flows lists 10,400")
	}
	var out strings.Builder
	tracker.print(&out)
	if !strings.HasPrefix(out.String(), "incomplete") {
		t.Errorf("overloaded, the list begins with %.30q", out.String())
	}
	for _, f := range spike {
		tracker.End(f)
	}
	check("after")
}
