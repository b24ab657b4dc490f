package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
)

// copies is the folder of a namespace, with the files of its locator.
type copies string

// Read implements locator.Disk.
func (c copies) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(c), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write implements locator.Disk.
func (c copies) Write(name string, data []byte) error {
	return durable.WriteFile(filepath.Join(string(c), name), data)
}

// openLocator opens what the node has heard of where keys are, and follows it, if the namespace has a locator.
func (ns *Namespace) openLocator() error {
	if !ns.core.Located() {
		return nil
	}
	log := ns.node.log.With(logNamespace(ns))
	var disk locator.Disk = &locator.Memory{}
	if ns.node.dir != "" {
		disk = copies(folder.Path(ns.node.dir, ns.id))
	}
	index, err := locator.Open(locator.Config{Shards: ns.core.Rule().Shards, Seed: rand.Uint64(), Disk: disk})
	if err != nil {
		return fmt.Errorf("open the locator: %w", err)
	}
	if n := index.Stats().Damaged; n > 0 {
		log.Warn("copies of the locator are damaged, or could not be read: they are fetched anew", slog.Int("copies", n))
	}
	ns.hosts.Locator = shards.NewFollower(ns.core, index, func(host node.ID, err error) {
		if ns.ctx.Err() == nil {
			log.Debug("which keys there are is not heard at this host for a while", logPeer(ID(host)), logError(err))
		}
	})
	hosts{ns}.Go(ns.ctx, func(ctx context.Context) {
		ns.hosts.Follow(ctx, func(err error) {
			log.Warn("copies of the locator could not be read or written: they are fetched anew, and written again", logError(err))
		})
	})
	return nil
}

// closeLocator makes durable what is known, for the next start.
func (ns *Namespace) closeLocator() {
	if ns.hosts == nil || ns.hosts.Locator == nil {
		return
	}
	if err := ns.hosts.Locator.Index.Save(); err != nil {
		ns.node.log.Warn("the locator could not be saved: the next start fetches it anew", logNamespace(ns), logError(err))
	}
}

// locatorSays is what the locator says of a key; nil: there is none.
func (ns *Namespace) locatorSays(key []byte) *status.LocatorSays {
	f := ns.hosts.Locator
	if f == nil {
		return nil
	}
	home := ns.core.Home(key)
	if ns.core.WholeHere(home) != nil {
		return &status.LocatorSays{Where: "here"}
	}
	where, shard := ns.hosts.Locate(key)
	now := ns.hosts.Net.Now()
	s := f.Status(home, now)
	says := &status.LocatorSays{Where: where.String(), Shard: int(shard), Host: ID(s.From), Fresh: s.Fresh}
	if s.Heard > 0 {
		says.Age = now - s.Heard
	}
	return says
}
