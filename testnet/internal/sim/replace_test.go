package sim

import (
	"testing"
	"time"
)

// What a machine has sent that is replaced never arrives; the new one is heard.
func TestReplace(t *testing.T) {
	w := New(1)
	n := NewNet(w, Behaviour{Delay: time.Second})
	got := ""
	send := func(text string) {
		n.Dial(0, 1, func(s *Stream) bool {
			s.Receive = func(frame []byte) { got += string(frame) }
			return true
		}).Send([]byte(text))
	}
	send("old")
	n.Cut(0, 1)
	send("waits")
	n.Replace(0)
	n.Heal(0, 1)
	send("new")
	w.Run(time.Minute)
	if got != "new" {
		t.Errorf("%q arrived", got)
	}
}
