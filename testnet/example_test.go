package testnet_test

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/testnet"
)

// Two nodes write while one direction of their link is cut. The run waits until
// they are equal, and judges what they hold.
func ExampleRun() {
	result, err := testnet.Run(context.Background(), testnet.Config{Scenario: `
nodes 2
every 2s
at 1s cut 0>1
at 2s put 0 a "one"
at 3s put 1 b "two"
at 5s heal 0>1
`})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := result.Series[len(result.Series)-1]
	fmt.Println("passed", result.Passed(), "violations", len(result.Violations))
	fmt.Println("nodes", last.Up, "different sets", last.Sets, "records", last.Records)
	// Output:
	// passed true violations 0
	// nodes 2 different sets 1 records 2
}
