package node

import (
	"testing"
	"time"
)

// What a member writes after a record that a former member has written wins over it, also where a host
// adopts that later, and has not heard of the write; the former member's record is a listed conflict.
func TestAdoptionKeepsTheOrder(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "key", "1")
	c.round()
	succeeds(t, c.ns[0].Remove(t.Context(), c.machines[2].ID, false))
	c.pass(time.Second)
	c.put(2, "key", "of a former member")
	if err := c.turn(1, 2); err != nil { // neither has heard
		t.Fatal(err)
	}
	c.pass(time.Second)
	c.put(0, "key", "later")
	c.pass(time.Minute)
	set := c.ns[1].Sets()[0]
	r := must(set.get([]byte("key")))
	succeeds(t, set.adopt(t.Context(), &r))
	c.round(0, 1)
	c.round(0, 1)
	listed := 0
	for i := range 2 {
		if r := must(get(c.ns[i], "key")); string(r.Value) != "later" {
			t.Errorf("%d holds %q of %s", i, r.Value, r.Version)
		}
		listed += c.ns[i].Sets()[0].Kept()
	}
	if listed == 0 {
		t.Error("what the former member wrote is listed nowhere")
	}
}
