package testnet

import (
	"testing"

	"go.uber.org/goleak"
)

// Sessions are coroutines: one that a run left open would show here.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
