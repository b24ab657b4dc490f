package testnet_test

import (
	"strings"
	"testing"

	"github.com/syncd-io/syncd/testnet"
)

// A read that comes to something else than the scenario says, or does not end, is told of.
func TestReadsComeToWhatIsExpected(t *testing.T) {
	const text = `nodes 2
shards 2 replicas 1 placement hash
every 3s
push

at 120s put 0 a "written" ack all
at 121s get 1 a expect record
at 121s get 1 a expect nothing
at 121s get 1 b expect nothing
at 121s get 1 b expect nowhere
at 122s partition 0|1
at 123s get 0 a expect short
at 123s get 1 a expect short
at 140s get 0 a expect record
at 140s get 1 a expect record
at 141s crash 0
at 141s crash 1
at 142s start 0
at 142s start 1
at 143s healall
`
	res, err := testnet.Run(t.Context(), testnet.Config{Scenario: text})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"at 2m1s get 1 a expect nothing" was to come to that, and came to "record"`,
		`"at 2m1s get 1 b expect nowhere" was to come to that, and came to "nothing"`,
	}
	// One of the two nodes is the host, and is enough; the other one asks it until it dies.
	for _, read := range []string{`"at 2m3s get %d a expect short" was to come to that, and came to "record"`, `"record" was expected of "at 2m20s get %d a expect record", which has not ended`} {
		found := 0
		for _, node := range []string{"0", "1"} {
			for _, said := range res.Unmet {
				if said == strings.Replace(read, "%d", node, 1) {
					found++
				}
			}
		}
		if found != 1 {
			t.Errorf("%s: of %d nodes", read, found)
		}
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(res.Unmet, "\n"), w) {
			t.Errorf("not told: %s", w)
		}
	}
	if len(res.Unmet) != 4 {
		t.Errorf("told: %s", strings.Join(res.Unmet, "\n"))
	}
}
