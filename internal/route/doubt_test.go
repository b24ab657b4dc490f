package route

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A read that is not sure names each node whose answer was not enough, and what it lacked.
func TestDoubtNamesWhatAnswersLack(t *testing.T) {
	settled := Answer{Host: true, Settled: true, Record: version(3)}
	current := Answer{Host: true, Settled: true, Current: true, Record: version(3)}
	other, older, without := settled, current, current
	other.OtherList, older.Record, without.Record = true, version(2), nil
	for name, c := range map[string]struct {
		here  *Answer
		one   *Answer // nil: it does not answer
		fails error
		all   bool
		want  string
	}{
		"not current":     {one: &settled, want: "peer1 was not found equal lately with each other node that may hold the shard; peer2 has not answered in time"},
		"another list":    {one: &other, want: "peer1 has another list of members"},
		"no host":         {one: &Answer{Record: version(3)}, want: "peer1 is no host of the shard"},
		"recovering":      {one: &Answer{Host: true, Record: version(3)}, want: "peer1 has not got all of the shard yet"},
		"fails":           {fails: errors.New("it is away"), want: "peer1 has not answered: it is away"},
		"this node":       {here: &settled, fails: errors.New("it is away"), want: "this node was not found equal lately"},
		"holds an older":  {here: &settled, one: &older, all: true, want: "peer1 holds an older record"},
		"holds none":      {here: &settled, one: &without, all: true, want: "peer1 does not hold the record"},
		"holds none here": {here: &Answer{Host: true, Settled: true}, fails: errors.New("it is away"), want: "this node was not found equal lately"},
	} {
		var times Times
		get := NewGet(&times, []Candidate{{ID: peerID(1)}, {ID: peerID(2)}}, GetOptions{Deadline: time.Second, Here: c.here, All: c.all}, 0)
		for step := get.Next(0); step.Do == Ask; step = get.Next(0) {
			switch {
			case step.Peer == peerID(2):
			case c.one != nil:
				get.Answered(step.Peer, *c.one, 0)
			default:
				get.Failed(step.Peer, c.fails, false, 0)
			}
		}
		found, _ := get.Result(time.Second)
		why := strings.ReplaceAll(strings.ReplaceAll(found.Doubt, peerID(1).String(), "peer1"), peerID(2).String(), "peer2")
		if found.Sure || !strings.Contains(why, c.want) {
			t.Errorf("%s: sure %t, %q; want %q", name, found.Sure, why, c.want)
		}
	}
	var times Times
	if found, _ := NewGet(&times, nil, GetOptions{Unheard: true}, 0).Result(0); !strings.Contains(found.Doubt, "has not said whether it holds") {
		t.Errorf("a member is unheard: %q", found.Doubt)
	}
	if found, _ := NewGet(&times, []Candidate{{ID: peerID(1)}}, GetOptions{}, 0).Result(0); !strings.Contains(found.Doubt, "was not asked") {
		t.Errorf("no host was asked: %q", found.Doubt)
	}
}
