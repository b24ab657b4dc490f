//go:build linux

package systemtest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

// behind kills one host of a key, writes the key, which the other host alone acknowledges, kills
// that one, too, and starts the first one again: until the other one is back, it holds an old
// value, and no daemon may call that, or that there is nothing, sure.
func (s *sharded) behind() {
	s.t.Helper()
	for n, held := range []bool{true, false} {
		key := fmt.Sprint("key of two hosts ", n)
		located, err := s.daemons[0].api.Locate(s.t.Context(), namespace, []byte(key), false)
		if err != nil {
			s.t.Fatal(err)
		}
		of := func(id string) int { return slices.IndexFunc(s.daemons, func(d *daemon) bool { return d.id == id }) }
		x, y := s.daemons[of(located.Hosts[0])], s.daemons[of(located.Hosts[1])]
		asker := s.daemons[slices.IndexFunc(s.daemons, func(d *daemon) bool { return d != x && d != y })]
		put := func(d *daemon, value, ack string) {
			s.t.Helper()
			if _, err := d.api.Put(s.t.Context(), namespace, []byte(key), strings.NewReader(value), client.PutOptions{AckOptions: client.AckOptions{Ack: ack}}, client.Condition{}); err != nil {
				s.t.Fatalf("%s: put %s: %v", d.name, value, err)
			}
		}
		if held {
			put(x, "old", "all")
		}
		x.kill()
		put(y, "new", "1")
		y.kill()
		x.restart()
		for _, d := range []*daemon{x, asker} {
			for range 3 {
				switch value, err := d.api.Get(s.t.Context(), namespace, []byte(key)); {
				case err == nil && value.Unsure == "":
					s.t.Errorf("%s is sure of %q, and %s has acknowledged another value", d.name, value.Bytes, y.name)
				case err != nil && !errors.Is(err, peer.ErrUnreachable):
					s.t.Errorf("%s: %v", d.name, err)
				}
			}
		}
		if err := asker.api.Export(s.t.Context(), namespace, client.ExportOptions{Versions: true}, io.Discard); err == nil {
			s.t.Errorf("%s scans a shard of which no host is sure", asker.name)
		}
		y.restart()
		for _, d := range []*daemon{x, asker} {
			for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // no daemon tells when it is so
				value, err := d.api.Get(s.t.Context(), namespace, []byte(key))
				if err == nil && value.Unsure == "" {
					if string(value.Bytes) != "new" {
						s.t.Errorf("%s is sure of %q", d.name, value.Bytes)
					}
					break
				}
				if time.Since(began) > patience {
					s.t.Fatalf("%s: %+v, %v", d.name, value, err)
				}
			}
		}
	}
}
