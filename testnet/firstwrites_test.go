package testnet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/testnet"
)

// Two nodes that reach the directory write the same keys first at one moment: the later one of each pair
// is told of the earlier one's entry, and follows it into its shard. No record has to recede.
func TestFirstWritesOfOneMoment(t *testing.T) {
	var text strings.Builder
	text.WriteString("nodes 4\nseed 1\nnet delay=10ms jitter=20ms\nevery 3s\nshards 8 replicas 1 placement writer\npush\n\n")
	for i := range 12 {
		fmt.Fprintf(&text, "at 120s put %d k%d \"by one\" ack all\nat 120s put %d k%d \"by another\" ack all\n", i%4, i, (i+1+i/4)%4, i)
	}
	text.WriteString("\nsettle 20m\n")
	res, err := testnet.Run(t.Context(), testnet.Config{Scenario: text.String()})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Passed() {
		t.Errorf("%q; violations %v; refused %v", res.Unmet, res.Violations, res.Refused)
	}
	if res.Met > 0 {
		t.Errorf("%d first writes have receded", res.Met)
	}
}
