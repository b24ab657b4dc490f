package testnet

import (
	"testing"

	"go.uber.org/goleak"
)

// Sessions are coroutines: goleak finds one that a run left open.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
