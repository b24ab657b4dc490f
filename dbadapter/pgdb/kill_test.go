package pgdb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/child"
	"github.com/syncd-io/syncd/internal/pgserver"
)

var (
	kills    = flag.Int("kills", 5, "how often TestServerKilled kills the server")
	killSeed = flag.Uint64("kill-seed", uint64(time.Now().UnixNano()), "when TestServerKilled does so")
)

// TestServerKilled kills the server in the middle of commits and starts it again,
// over and over, under one open store. What was acknowledged is there, whole; what an
// error says was not written is not there; and the store goes on by itself. So it is where
// the server, by its own setting, would acknowledge what it has not stored yet.
func TestServerKilled(t *testing.T) {
	t.Logf("-kill-seed=%d", *killSeed)
	for setting, kills := range map[string]int{"on": *kills, "off": (*kills + 1) / 2} {
		t.Run("synchronous_commit "+setting, func(t *testing.T) { serverKilled(t, "synchronous_commit="+setting, kills) })
	}
}

func serverKilled(t *testing.T, setting string, kills int) {
	random := rand.New(rand.NewPCG(*killSeed, 1))
	server := pgserver.Start(t, setting)
	store := open(t, server, pgdb.Options{Schema: "killed"})
	n := namespaceOf(t, store)
	const writers = 4
	stop := make(chan struct{})
	var all sync.WaitGroup
	var acknowledged, refused [writers]int
	var came [writers]chan struct{} // an acknowledgement
	for w := range writers {
		came[w] = make(chan struct{}, 1)
		all.Go(func() {
			defer close(came[w])
			for number := 1; ; {
				select {
				case <-stop:
					return
				default:
				}
				_, err := n.Apply(context.Background(), batchOf(t, w, number))
				switch {
				case err == nil:
					acknowledged[w] = number
					number++
					select {
					case came[w] <- struct{}{}:
					default:
					}
				case !nothingWritten(err):
					t.Errorf("writer %d, batch %d: the outcome is unknown although the server came back: %v", w, number, err)
					return
				default:
					refused[w]++
					if got, err := foundIn(n, w); err == nil && got >= number {
						t.Errorf("writer %d: batch %d is there, and an error said that it is not", w, got)
						return
					}
				}
			}
		})
	}
	for range kills {
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		server.Crash()
		server.Run()
	}
	for w := range writers {
		for range 2 { // one may be of before the kill
			select {
			case <-came[w]:
			case <-time.After(5 * time.Minute):
				t.Errorf("writer %d does not go on", w)
			}
		}
	}
	close(stop)
	all.Wait()
	t.Logf("acknowledged %v, refused %v", acknowledged, refused)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	reopened := namespaceOf(t, open(t, server, pgdb.Options{Schema: "killed"}))
	for w, want := range acknowledged {
		if got, err := foundIn(reopened, w); err != nil || got != want {
			t.Errorf("writer %d: batch %d is there (%v), and %d was the last one acknowledged", w, got, err, want)
		}
		if want == 0 {
			t.Errorf("writer %d has written nothing", w)
		}
	}
}

// childURL is where a child finds the server.
const childURL = "SYNCD_PGDB_CHILD"

// TestOwnerKilled kills the process that has the store open in the middle of
// commits. Another one is kept out before, and let in at once afterwards; what was
// acknowledged is there, whole.
func TestOwnerKilled(t *testing.T) {
	if url := os.Getenv(childURL); url != "" {
		writeUntilKilled(t, url)
		return
	}
	server := pgserver.Start(t)
	for round := range 3 {
		c := child.Start(t, "TestOwnerKilled", childURL+"="+server.URL())
		acknowledged := 0
		for c.Lines.Scan() {
			if _, err := fmt.Sscanf(c.Lines.Text(), "acknowledged %d", &acknowledged); err != nil {
				t.Fatalf("the child said %q", c.Lines.Text())
			}
			if acknowledged >= 20*(round+1) {
				break
			}
		}
		_, err := pgdb.Open(t.Context(), server.URL(), pgdb.Options{Schema: "owned"})
		if !errors.Is(err, dbadapter.ErrLocked) || !strings.Contains(err.Error(), "session ") {
			t.Errorf("a second process gets %v", err)
		}
		c.Kill()
		for c.Lines.Scan() { // what it said before it was killed
			if _, err := fmt.Sscanf(c.Lines.Text(), "acknowledged %d", &acknowledged); err != nil {
				break // a line that was cut
			}
		}
		store := open(t, server, pgdb.Options{Schema: "owned"})
		got, err := foundIn(namespaceOf(t, store), 0)
		if err != nil || got < acknowledged || got > acknowledged+1 {
			t.Errorf("round %d: batch %d is there (%v), and %d was acknowledged last", round, got, err, acknowledged)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func writeUntilKilled(t *testing.T, url string) {
	store, err := pgdb.Open(t.Context(), url, pgdb.Options{Schema: "owned"})
	if err != nil {
		t.Fatal(err)
	}
	n := namespaceOf(t, store)
	number, err := foundIn(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		number++
		if _, err := n.Apply(t.Context(), batchOf(t, 0, number)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acknowledged %d\n", number)
	}
}
