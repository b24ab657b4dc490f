package nodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
)

// labelKey marks the goroutines of nets. A goroutine inherits the labels of the
// one that starts it, so that the nets of parallel tests in one process keep
// theirs apart.
const labelKey = "syncd-testnet"

func newLabel() string { return rand.Text() }

// leftovers are the resources that nodes have not released.
type leftovers struct {
	mu    sync.Mutex
	hosts []closedHost
}

type closedHost struct {
	node int
	host host.Host
}

// scopes notes a host that has been closed.
func (l *leftovers) scopes(node int, h host.Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts = append(l.hosts, closedHost{node, h})
}

// settling is how long goroutines, files and connections may take to end.
const settling = 10 * time.Second

// find waits until all leftovers are gone, and reports those that remain after
// settling.
func (l *leftovers) find(ctx context.Context, n *Net) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for {
		err := errors.Join(l.accounts(), goroutines(n.label), openFiles(n.config.Dir))
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("all nodes are closed, but %w", err)
		}
	}
}

// accounts reads the use of resources from the managers of closed hosts.
func (l *leftovers) accounts() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, h := range l.hosts {
		err := h.host.Network().ResourceManager().ViewSystem(func(s network.ResourceScope) error {
			if use := s.Stat(); use != (network.ScopeStat{}) {
				return fmt.Errorf("node %d has not given back: %+v", h.node, use)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// goroutines finds the goroutines with a label. The profile groups equal ones,
// with their labels, in paragraphs.
func goroutines(label string) error {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err
	}
	var left []string
	for paragraph := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(paragraph, `"`+labelKey+`":"`+label+`"`) {
			left = append(left, paragraph)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("these goroutines run on (each began in a node of this net, or in a goroutine that used it):\n%s", strings.Join(left, "\n\n"))
}

// openFiles finds descriptors below a folder. Only Linux tells.
func openFiles(dir string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	const descriptors = "/proc/self/fd"
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	var left []string
	for _, e := range entries {
		name, err := os.Readlink(filepath.Join(descriptors, e.Name()))
		if err == nil && strings.HasPrefix(name, dir+string(filepath.Separator)) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("these files are open still: %s", strings.Join(left, ", "))
}

// heap is how many bytes the live objects of the process take.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
