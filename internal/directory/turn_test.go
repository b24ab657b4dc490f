package directory

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// turn runs a turn of the honest host of a duo, and returns it with the questions that it has asked.
func (d *duo) turn(wait bool, answer func(Message) Message) (t *Turn, asked []Message, err error) {
	t = d.node.Follow(honest, wait)
	for m := t.Next(d.now); m != nil; m = t.Next(d.now) {
		asked = append(asked, m)
		if err = t.Answered(answer(m), d.now); err != nil {
			break
		}
	}
	return t, asked, err
}

// says is what the honest host answers.
func (d *duo) says(m Message) Message {
	switch m := m.(type) {
	case *Poll:
		return d.hosts[honest].News(m)
	case *Take:
		if b, err := d.hosts[honest].Block(m); err == nil {
			return b
		}
	}
	return nil
}

// lone is a set with one host, which is honest.
func lone(t *testing.T) *duo {
	d := newDuo(t, []roster.ID{honest, liar})
	d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {honest}})
	return d
}

func kinds(asked []Message) (all string) {
	for _, m := range asked {
		if _, poll := m.(*Poll); poll {
			all += "p"
		} else {
			all += "t"
		}
	}
	return all
}

// A turn polls, takes what is missing, and polls for what has happened meanwhile; the next one polls once.
func TestTurn(t *testing.T) {
	d := lone(t)
	first, asked, err := d.turn(true, d.says)
	if got := kinds(asked); err != nil || got != "ptp" || asked[0].(*Poll).Wait || !first.Again() {
		t.Fatalf("%s, %+v, again %t, %v", got, asked[0], first.Again(), err)
	}
	for work := d.node.Work(); work != nil; work = d.node.Work() {
		if err := work(); err != nil {
			t.Fatal(err)
		}
	}
	if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
		t.Errorf("%+v", a)
	}
	turn, asked, err := d.turn(true, d.says)
	if got := kinds(asked); err != nil || got != "p" || !asked[0].(*Poll).Wait || turn.Again() {
		t.Errorf("without news: %s, %+v, again %t, %v", got, asked[0], turn.Again(), err)
	}
	d.hosts[honest].Set(0, 5000, 2)
	if turn, asked, err = d.turn(true, d.says); err != nil || len(asked) != 1 || !turn.Again() {
		t.Errorf("with news: %d questions, again %t, %v", len(asked), turn.Again(), err)
	}
	if turn, _, err = d.turn(true, func(m Message) Message {
		d.now += MaxWait
		return d.says(m)
	}); err != nil || !turn.Again() {
		t.Errorf("a host that has let it wait: %t, %v", turn.Again(), err)
	}
	d.hosts[honest].Set(0, 5001, 2)
	if turn, asked, err = d.turn(false, d.says); err != nil || asked[0].(*Poll).Wait || turn.Again() {
		t.Errorf("one that is not to wait: %+v, %t, %v", asked[0], turn.Again(), err)
	}
	for _, wait := range []bool{true, false} {
		d.node.hosts[honest].surveyed = false
		if turn, asked, err = d.turn(wait, d.says); err != nil || !asked[0].(*Poll).All || turn.Again() != wait {
			t.Errorf("one that asks for all, and is to wait, %t: %+v, %t, %v", wait, asked[0], turn.Again(), err)
		}
	}
	d.hosts[honest].most = 1
	for i := range Code(3) {
		d.hosts[honest].Set(0, 5010, i)
	}
	if _, asked, err = d.turn(false, d.says); err != nil || kinds(asked) != "ppp" {
		t.Errorf("a log that goes on: %s, %v", kinds(asked), err)
	}
}

// A turn ends where the host does not answer, or says what an honest one does not say.
func TestTurnEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(d *duo, m Message) Message
		asked   string
		faulty  bool
		unheard bool // ErrNoNews
	}{
		"a poll is not answered":          {func(*duo, Message) Message { return nil }, "p", true, true},
		"a poll is answered with a block": {func(d *duo, _ Message) Message { return &Block{} }, "p", true, true},
		"a take is not answered": {func(d *duo, m Message) Message {
			if _, take := m.(*Take); take {
				return nil
			}
			return d.says(m)
		}, "pt", false, false},
		"the sums of all sets do not come": {func(d *duo, m Message) Message {
			said := d.says(m)
			said.(*News).All = false
			return said
		}, "p", true, false},
		"the log goes on for ever": {func(d *duo, m Message) Message {
			said := d.says(m)
			if n, news := said.(*News); news {
				n.More, n.All, n.Sums = true, false, nil
			}
			return said
		}, "", false, false},
	} {
		d := lone(t)
		turn, asked, err := d.turn(true, func(m Message) Message { return c.answer(d, m) })
		if got := kinds(asked); c.asked != "" && got != c.asked || c.asked == "" && len(got) != MaxSteps {
			t.Errorf("%s: it asks %s", name, got)
		}
		if (err != nil) != c.faulty || errors.Is(err, ErrNoNews) != c.unheard {
			t.Errorf("%s: %v", name, err)
		}
		if m := turn.Next(d.now); m != nil {
			t.Errorf("%s: it goes on with %T", name, m)
		}
	}
}
