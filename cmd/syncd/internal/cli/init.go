package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/settings"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

type initCmd struct {
	NewIdentity bool     `help:"Give the node that is there a fresh key, for a copy that is to live beside its original."`
	Listen      []string `help:"Multiaddr to listen on for peers, kept in the configuration file; may be given again." placeholder:"MULTIADDR"`
	storeFlags
}

func (initCmd) Help() string {
	return `What is there already stays as it is, so that init may be run again. "syncd serve" makes what is missing, too; init is for seeing the node's id, or setting its addresses, before the first start.

With --new-identity, a node that is not running gets a fresh key and so another id: for a restored or copied data directory whose original still runs, or one whose identity.key is lost or damaged. Its namespaces and records stay; the old key is kept as identity-ID.key, a damaged one as identity.key.damaged. The other members do not know the new id: in each namespace, have an admin invite it (syncd invite), and join with the ticket (syncd join), which keeps the records. Until then it can neither write nor sync there. The old key gives no right to the new id; so where the original was a namespace's only admin and is lost, keep its identity.

Examples:
    syncd init
    syncd init --listen /ip4/0.0.0.0/tcp/4747 --listen /ip6/::/tcp/4747
    syncd init --new-identity --data-dir /srv/restored`
}

// initOutput says what init found or made.
type initOutput struct {
	ID      string   `json:"id"`
	DataDir string   `json:"data_dir"`
	Config  string   `json:"config"`
	Made    []string `json:"made"`
}

// Run makes what is missing.
func (c initCmd) Run(ctx context.Context, a *app) (err error) {
	if c.NewIdentity {
		return c.renew(ctx, a)
	}
	out := initOutput{DataDir: a.DataDir, Config: a.file.Path(), Made: []string{}}
	if _, err := os.Stat(a.DataDir); errors.Is(err, fs.ErrNotExist) {
		out.Made = append(out.Made, "data directory")
	}
	if err := makeDataDir(a.DataDir); err != nil {
		return err
	}
	wrote, err := c.keepListen(a)
	if err != nil {
		return err
	}
	if wrote {
		out.Made = append(out.Made, "configuration")
	}
	_, missing := os.Stat(filepath.Join(a.DataDir, "identity.key"))
	// Opening the node makes its identity; with no address it stays alone.
	store, err := c.open(ctx, a, nil, 0)
	if err != nil {
		return err
	}
	defer closeStore(store, &err)
	node, err := peer.Open(ctx, peer.Config{Dir: a.DataDir, Store: store, StoreKind: c.kind(), ListenAddrs: []string{}})
	if err != nil {
		return a.notOpened(err)
	}
	out.ID = node.ID().String()
	if err := node.Close(ctx); err != nil {
		return fmt.Errorf("close %s: %w", a.DataDir, err)
	}
	if errors.Is(missing, fs.ErrNotExist) {
		out.Made = append(out.Made, "identity")
	}
	return a.answer(nil, out, func() {
		t := a.table("", "")
		t.row("node", out.ID)
		t.row("data", out.DataDir)
		t.row("made", cmp.Or(strings.Join(out.Made, ", "), "nothing: all is there already"))
		t.print()
		a.remark("start the daemon with: syncd serve")
	})
}

// renew gives the node another identity.
func (c initCmd) renew(ctx context.Context, a *app) (err error) {
	if len(c.Listen) > 0 {
		return problem.Usage("init --new-identity changes the key only; set the addresses with another init")
	}
	if !slices.ContainsFunc([]string{"identity.key", "namespaces", "peers.cbor", "store"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(a.DataDir, name))
		return err == nil
	}) {
		return fmt.Errorf("init --new-identity: there is no node in %s: %w", a.DataDir, peer.ErrNotFound)
	}
	store, err := c.open(ctx, a, nil, 0)
	if err != nil {
		return err
	}
	defer closeStore(store, &err)
	done, err := offline.NewIdentity(a.DataDir, store)
	if err != nil {
		return a.notOpened(err)
	}
	out := struct {
		offline.Renewed
		DataDir string `json:"data_dir"`
	}{done, a.DataDir}
	return a.answer(nil, out, func() {
		t := a.table("", "")
		t.row("node", out.New.String())
		if out.Old != "" {
			t.row("was", out.Old.String())
		}
		if out.OldKey != "" {
			t.row("old key", out.OldKey)
		}
		t.print()
		a.remark(`the namespaces and records stay, and no other member knows this id: have an admin of each namespace make a ticket with "syncd invite", and join with it here (syncd join)`)
	})
}

// keepListen writes the addresses into the configuration file, and tells
// whether it did. A file that says otherwise is not overruled.
func (c initCmd) keepListen(a *app) (bool, error) {
	if len(c.Listen) == 0 {
		return false, nil
	}
	if err := portsValid("listen", c.Listen); err != nil {
		return false, err
	}
	now, ok, err := a.file.Get("listen")
	if err != nil {
		return false, err
	}
	if ok {
		if slices.Equal(strings.Split(now, ","), c.Listen) {
			return false, nil
		}
		return false, problem.Usage("init --listen: the configuration %s says %s; change it there", a.file.Path(), now)
	}
	text, err := settings.Encode(map[string]any{"listen": c.Listen})
	if err != nil {
		return false, err
	}
	f, err := os.OpenFile(a.file.Path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, fmt.Errorf("write the configuration: %w", err)
	}
	// A last line without its end must not swallow ours.
	_, err = fmt.Fprintf(f, "\n%s", text)
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("write the configuration: %w", err)
	}
	return true, nil
}
