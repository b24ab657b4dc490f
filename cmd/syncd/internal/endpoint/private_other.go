//go:build !unix

package endpoint

import (
	"context"
	"net"
)

// listenPrivately opens a socket in a folder that its owner alone can enter.
func listenPrivately(ctx context.Context, lc *net.ListenConfig, path string) (net.Listener, error) {
	return lc.Listen(ctx, "unix", path)
}
