package testnettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// labelKey marks the goroutines of nets. A goroutine inherits the labels of the
// one that starts it, so that the nets of parallel tests in one process keep
// theirs apart.
const labelKey = "syncd-testnet"

// adopt adds the calling goroutine, and all that it starts from now on, to the
// net: close reports those that still run.
func (n *Net) adopt() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, n.label)))
}

// settling is how long goroutines, files and connections may take to end.
const settling = 10 * time.Second

// leaks waits until all that nodes have taken is given back, and reports what remains
// after settling.
func (n *Net) leaks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	var left error
	err := until(ctx, func() (bool, error) {
		left = errors.Join(n.accounts(), goroutines(n.label), openFiles(n.dir))
		return left == nil, nil
	})
	if err != nil {
		return fmt.Errorf("all nodes are closed, but %w", left)
	}
	return nil
}

// accounts reads the use of resources from the managers of closed hosts.
func (n *Net) accounts() (errs error) {
	for _, p := range n.places {
		for _, h := range p.closed {
			errs = errors.Join(errs, h.Network().ResourceManager().ViewSystem(func(s network.ResourceScope) error {
				if use := s.Stat(); use != (network.ScopeStat{}) {
					return fmt.Errorf("node %d has not given back: %+v", p.index, use)
				}
				return nil
			}))
		}
	}
	return errs
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
