package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// crowded marks the requests of a connection that was one too many.
type crowded struct{}

// BoundConnections lets a server have a fourth of the descriptors that the process may
// have: watchers may hold theirs for ever, the store needs some, and libp2p takes half.
// Whoever connects beyond that is told that the server is busy, and is cut off.
func BoundConnections(srv *http.Server, descriptors uint64) {
	most := int64(min(descriptors/4, 1<<30))
	var open atomic.Int64
	srv.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		if open.Load() < most {
			return ctx
		}
		return context.WithValue(ctx, crowded{}, true)
	}
	srv.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(crowded{}) == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		writeProblem(w, problem.From(fmt.Errorf("%w: %d connections to the API are open; end some watches, or let the daemon have more open files (ulimit -n)", peer.ErrBusy, most)))
	})
}
