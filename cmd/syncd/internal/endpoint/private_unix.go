//go:build unix

package endpoint

import (
	"context"
	"net"
	"syscall"
)

// listenPrivately opens a socket that is closed to other users from the first
// moment. The mask holds for the whole process meanwhile, and can only make
// other files more private.
func listenPrivately(ctx context.Context, lc *net.ListenConfig, path string) (net.Listener, error) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	return lc.Listen(ctx, "unix", path)
}
