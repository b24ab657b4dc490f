//go:build linux

package systemtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

// versions are those of an export, by key.
func (d *daemon) versions() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(d.export()))
	for lines.Scan() {
		var one struct{ Key, Version string }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil || one.Version == "" {
			d.t.Fatalf("%s: %q: %v", d.name, lines.Text(), err)
		}
		all[one.Key] = one.Version
	}
	return all
}

// standing is how two versions stand; their texts are in their order.
func standing(here, there string) string {
	switch {
	case here == there && here == "":
		return "held_by_neither"
	case here == there:
		return "same"
	case there == "":
		return "missing_there"
	case here == "":
		return "missing_here"
	case here > there:
		return "newer_here"
	}
	return "newer_there"
}

// Five daemons, of which one is killed and one stands still: what each of the others says of
// a key and a peer is what the exports say, and a wait finds just those that hold it.
func TestWhyAndWaitAgainstExports(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var five []*daemon
	for i := range 5 {
		five = append(five, newDaemonEvery(t, fmt.Sprint("node ", i), t.TempDir(), time.Hour, "--push=false"))
	}
	if _, err := five[0].api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace}); err != nil {
		t.Fatal(err)
	}
	for _, d := range five[1:] {
		ticket, err := five[0].api.Invite(t.Context(), api.Invitation{NS: namespace, Role: "write"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.api.Join(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
	}
	key := func() string { return fmt.Sprint("key/", random.IntN(60)) }
	write := func(n int) {
		for range n {
			d := five[random.IntN(len(five))]
			if _, err := d.api.Put(t.Context(), namespace, []byte(key()), strings.NewReader(valueOf(random.IntN(1000))), client.PutOptions{}, client.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(100)
	for range 2 { // the lists, and what all have
		for _, d := range five[1:] {
			if _, err := five[0].sync(d); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(60)
	const frozen, killed = 3, 4
	var held []map[string]string
	for _, d := range five {
		held = append(held, d.versions())
	}
	five[killed].kill()
	if err := five[frozen].process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = five[frozen].process.Process.Signal(syscall.SIGCONT) }
	defer goOn()
	seen := map[string]int{}
	for i, d := range five[:frozen] {
		for j, peer := range five[:frozen] {
			if i == j {
				continue
			}
			for range 15 {
				k := key()
				whys, err := d.api.Why(t.Context(), namespace, []byte(k), peer.id)
				if err != nil || len(whys.Peers) != 1 {
					t.Fatalf("%s: %+v, %v", d.name, whys, err)
				}
				want := standing(held[i][k], held[j][k])
				seen[want]++
				if got := whys.Peers[0].Standing; got != want {
					t.Errorf("%s says of %q and %s: %s; by the exports it is %s", d.name, k, peer.name, got, want)
				}
			}
		}
	}
	t.Log(seen)
	for _, away := range []int{frozen, killed} {
		whys, err := five[0].api.Why(t.Context(), namespace, []byte(key()), five[away].id)
		if err != nil || len(whys.Peers) != 1 || whys.Peers[0].Standing != "unknown" {
			t.Errorf("of %s: %+v, %v", five[away].name, whys, err)
		}
	}
	k := key()
	if _, err := five[0].api.Put(t.Context(), namespace, []byte(k), strings.NewReader("awaited"), client.PutOptions{}, client.Condition{}); err != nil {
		t.Fatal(err)
	}
	waited, err := five[0].api.Wait(t.Context(), namespace, api.WaitRequest{Key: &k, Count: 2, Timeout: "1m"})
	if err != nil || len(waited.Held) != 2 {
		t.Fatalf("%+v, %v", waited, err)
	}
	version := five[0].versions()[k]
	for _, d := range five[1:frozen] {
		if got := d.versions()[k]; got < version {
			t.Errorf("confirmed, and %s holds %q", d.name, got)
		}
	}
	if waited, err = five[0].api.Wait(t.Context(), namespace, api.WaitRequest{Key: &k, Timeout: "2s"}); err == nil {
		t.Errorf("all hold it, as it says: %+v", waited)
	}
	goOn()
	five[killed].restart()
	mine := five[0].versions()
	if waited, err = five[0].api.Wait(t.Context(), namespace, api.WaitRequest{Timeout: "1m"}); err != nil || len(waited.Held) != 4 {
		t.Fatalf("%+v, %v", waited, err)
	}
	for _, d := range five[1:] {
		theirs := d.versions()
		for k, version := range mine {
			if theirs[k] < version {
				t.Errorf("it holds all, and %s holds %q of %q, not %q", d.name, theirs[k], k, version)
			}
		}
	}
}
