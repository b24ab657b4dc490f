package peer

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A condition on a version that one host has acknowledged is no conflict where the other host, which is current, has not heard of
// it yet: all hosts are asked; at that other host itself, with one acknowledgement, it may be unsure. On a version that no host holds it is
// a conflict, also where the version is a later one.
func TestConditionOnWhatAHostHasNotHeardOf(t *testing.T) {
	t.Parallel()
	for ahead := range 2 {
		for name, at := range map[string]func(asker *Namespace, behind *Namespace) *Namespace{
			"elsewhere":       func(asker, _ *Namespace) *Namespace { return asker },
			"at the one late": func(_, behind *Namespace) *Namespace { return behind },
		} {
			t.Run(fmt.Sprintf("%s, host %d is ahead", name, ahead), func(t *testing.T) {
				c, _, asker, hosts := newBothCurrent(t)
				ns := at(asker, c.spaces[hosts[1-ahead]])
				c.now.Add(int64(time.Second))
				second := c.write(hosts[ahead], "key", "second")
				third, err := ns.PutIf(t.Context(), []byte("key"), []byte("third"), second, Acks(1))
				if ns != asker && errors.Is(err, ErrUnsure) { // until it has heard of it
					c.round()
					third, err = ns.PutIf(t.Context(), []byte("key"), []byte("third"), second, Acks(1))
				}
				if err != nil {
					t.Errorf("on what one host holds: %v", err)
				}
				unknown := third
				unknown.Clock += 1 << 30
				for _, ns := range []*Namespace{asker, ns} {
					var conflict *ConflictError
					if _, err := ns.PutIf(t.Context(), []byte("key"), []byte("fourth"), unknown); !errors.As(err, &conflict) || conflict.Held != third {
						t.Errorf("on a version that no host holds: %v", err)
					}
				}
				for range 3 {
					c.round()
				}
				for _, host := range hosts {
					if got := string(c.held(host, "key").Value); got != "third" {
						t.Errorf("host %d holds %q", host, got)
					}
				}
			})
		}
	}
}
