// Command syncd-testnet runs many simulated nodes through faults and checks them.
// "syncd testnet" starts it.
package main

import (
	"os"

	"github.com/syncd-io/syncd/cmd/syncd/internal/simulate"
)

func main() { os.Exit(simulate.Process()) }
