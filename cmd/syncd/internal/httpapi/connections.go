package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Connections bounds those of the API: watchers may hold theirs for ever, and the store
// and the peers need descriptors, too.
type Connections struct {
	most int
	held chan struct{}
}

// spareConnections is how many more may be open at a time, only to be refused.
const spareConnections = 4

// NewConnections takes how many descriptors the process may have, and uses a fourth of
// them; libp2p takes half.
func NewConnections(files uint64) *Connections {
	most := int(min(files/4, 1<<16))
	return &Connections{most, make(chan struct{}, most+spareConnections)}
}

type crowded struct{}

// Bound bounds a server, whose listeners are those of Listen. It refuses connections
// beyond the bound as busy.
func (c *Connections) Bound(srv *http.Server) {
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(crowded{}) == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		writeProblem(w, problem.From(fmt.Errorf("%w: %d connections to the API are open; end some watches, or let the daemon have more open files (ulimit -n)", peer.ErrBusy, c.most)))
	})
	srv.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed || s == http.StateHijacked {
			<-c.held
		}
	}
	srv.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		if len(c.held) > c.most {
			return context.WithValue(ctx, crowded{}, true)
		}
		return ctx
	}
}

// Listen makes a listener of one that accepts no connection beyond the bound and the
// spare ones.
func (c *Connections) Listen(l net.Listener) net.Listener { return boundedListener{l, c.held} }

type boundedListener struct {
	net.Listener
	held chan struct{}
}

func (l boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.held <- struct{}{} // until its state is that it is closed
	}
	return conn, err
}
