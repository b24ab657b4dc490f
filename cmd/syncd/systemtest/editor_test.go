//go:build linux

package systemtest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// editor writes to one daemon, one write after the other: records of its own, changes of
// its share of the packages, and deletions of some of these, which are never written
// again. No two editors write to one key, so that what was acknowledged last must be held
// in the end. A write that the daemon did not answer, because it was killed, is tried
// again until it is answered.
type editor struct {
	d        *daemon
	index    debian
	packages []string // its share, less those deleted
	keep     int      // how many of them it leaves
	random   *rand.Rand
	next     int

	acknowledged    map[string]string // the value last acknowledged; "": deleted
	trying          edit              // not answered yet
	writes, deletes int               // acknowledged
}

// run writes until stop is closed. Then the fields may be read.
func (e *editor) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if e.trying.key == "" {
			e.trying = e.draw()
		}
		switch err := e.write(); {
		case err == nil:
			e.acknowledged[e.trying.key] = e.trying.value
			e.writes++
			if e.trying.value == "" {
				e.deletes++
			}
			e.trying = edit{}
		case !errors.Is(err, problem.ErrNoDaemon):
			e.d.t.Errorf("%s refused to write %q: %v", e.d.name, e.trying.key, err)
			return
		}
		select { // a rate that a busy machine can bear
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (e *editor) write() error {
	ctx, key := e.d.t.Context(), []byte(e.trying.key)
	if e.trying.value != "" {
		_, err := e.d.api.Put(ctx, api.PutParams{RecordParams: api.Record(namespace, key)}, strings.NewReader(e.trying.value))
		return err
	}
	_, err := e.d.api.Delete(ctx, api.DeleteParams{RecordParams: api.Record(namespace, key)})
	if errors.Is(err, peer.ErrNotFound) || errors.Is(err, peer.ErrDeleted) { // a deletion that was not answered
		return nil
	}
	return err
}
