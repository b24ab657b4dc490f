package nodes_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/testnet/internal/nodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Close finds goroutines that an application has left running, and files that it
// has left open.
func TestLeftovers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is sure")
	}
	n, err := nodes.Open(t.Context(), nodes.Config{Nodes: 1, Memory: true, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	started := make(chan struct{})
	go func() {
		n.Adopt(t.Context())
		go func() { close(started); <-stop }()
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := n.Close(ctx); err == nil {
		t.Error("a goroutine that runs on was not found")
	} else {
		t.Log(err)
	}
	close(stop)
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
