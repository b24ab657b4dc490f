package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/peer/offline"
)

type backupCmd struct {
	Make   backupMakeCmd   `cmd:"" default:"withargs" help:"Back the node up into a folder; the word make may be left out."`
	Ls     backupLsCmd     `cmd:"" help:"List the backups in a folder."`
	Verify backupVerifyCmd `cmd:"" help:"Read all backups in a folder and compare them with their checksums."`
}

func (backupCmd) Help() string {
	return `The first backup in a folder is whole, each further one holds what has changed since the one before. All records, members, secrets and the node's key are of one moment; the daemon goes on meanwhile. The folder is on the daemon's machine and only its owner can read it: the key is enough to be this node. The configuration file is not in it.

verify reads all backups; exit code 7 names the first file that is damaged, and exit code 1 the program that can restore a backup, where this one cannot.

Older backups may be deleted by hand, up to the newest one that is whole (syncd backup ls).

Examples:
    syncd backup /mnt/backups/notes
    syncd backup /mnt/backups/notes --full
    syncd backup ls /mnt/backups/notes
    syncd backup verify /mnt/backups/notes
    syncd restore /mnt/backups/notes --data-dir /srv/restored`
}

type backupMakeCmd struct {
	Dir  string `arg:"" name:"dir" help:"Folder: empty, absent, or with this node's backups."`
	Full bool   `help:"Make a backup that needs no other one before it."`
}

// Run has the daemon make a backup.
func (c backupMakeCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	bar := a.bars().Bytes("back up", 0)
	b, err := daemon.Backup(ctx, api.NewBackup{Dir: dir, Full: c.Full}, bar.Set)
	bar.Done()
	return a.answer(attempt(err, "back up into %s", dir), b, func() { a.printf("%s\n", backupLine(&b)) })
}

// backupLine describes a backup on one line.
func backupLine(b *offline.Backup) string {
	records := int64(0)
	for _, ns := range b.Namespaces {
		records += ns.Records
	}
	kind := "whole"
	if b.Base > 0 {
		kind = fmt.Sprintf("what changed since backup %d", b.Base)
	}
	return fmt.Sprintf("backup %d, %s: %s of %s, %s", b.Generation, kind, countOf(len(b.Namespaces), "namespace"), countOf(records, "record"), size(b.Bytes))
}

type backupLsCmd struct {
	Dir string `arg:"" name:"dir" help:"Folder of backups."`
}

// Run lists the backups in a folder, without a daemon.
func (c backupLsCmd) Run(a *app) error {
	all, err := offline.Backups(c.Dir)
	return a.answer(err, all, func() { a.printBackups(all) })
}

type backupVerifyCmd struct {
	Dir string `arg:"" name:"dir" help:"Folder of backups."`
}

// Run verifies the backups in a folder, without a daemon.
func (c backupVerifyCmd) Run(ctx context.Context, a *app) error {
	bar := a.bars().Bytes("verify", 0)
	all, err := offline.VerifyBackups(ctx, c.Dir, func(read, _ int64) { bar.Set(read) })
	bar.Done()
	return a.answer(err, all, func() {
		a.printBackups(all)
		a.remark("all files are what was written")
	})
}

func (a *app) printBackups(all []*offline.Backup) {
	t := a.table("backup", "taken", "holds", "size", "namespaces", "records")
	for _, b := range all {
		holds, records := "all", int64(0)
		if b.Base > 0 {
			holds = "changes since " + strconv.Itoa(b.Base)
		}
		for _, ns := range b.Namespaces {
			records += ns.Records
		}
		t.row(strconv.Itoa(b.Generation), b.Taken.Format(time.RFC3339), holds, size(b.Bytes), strconv.Itoa(len(b.Namespaces)), strconv.FormatInt(records, 10))
	}
	t.print()
}

type restoreCmd struct {
	Dir        string `arg:"" name:"dir" help:"Folder of backups."`
	Store      string `help:"Where the records go, whatever they were backed up from: badger or pebble." enum:"badger,pebble" default:"badger"`
	Generation int    `help:"Which backup to restore, as syncd backup ls counts them. Default: the latest." placeholder:"N"`
}

func (restoreCmd) Help() string {
	return `Makes the data directory of a node, without a daemon: --data-dir must be empty, or not there. All files are verified before anything is written, and what was restored is opened and read; an error leaves nothing behind.

The restored node has the identity of the original. Where the original still runs, give the copy one of its own before it is started: syncd init --new-identity.

Example:
    syncd restore /mnt/backups/notes --data-dir /srv/restored`
}

// Run restores a backup.
func (c restoreCmd) Run(ctx context.Context, a *app) error {
	bar := a.bars().Bytes("restore", 0)
	b, err := offline.Restore(ctx, c.Dir, a.DataDir, offline.RestoreOptions{Generation: c.Generation, StoreKind: ondisk.Kind(c.Store), Progress: func(read, _ int64) { bar.Set(read) }})
	bar.Done()
	return a.answer(err, b, func() {
		a.printf("node %s in %s, as of %s\n%s\n", b.Node, a.DataDir, b.Taken.Format(time.RFC3339), backupLine(b))
		a.remark("start it with: syncd serve; if the original node still runs, first: syncd init --new-identity")
	})
}

type migrateCmd struct {
	Kind string `arg:"" name:"kind" help:"The database to move to: badger or pebble." enum:"badger,pebble"`
}

func (migrateCmd) Help() string {
	return `Works on the data directory of a node that is not running, and needs as much room beside it as the records take. All records are read and verified, copied as they are with all that belongs to them, and the copy is compared with what was written; then the node changes over in one step, and the old store is removed. After an error, or a crash before that step, the node has its old store, and migrate may be run again.

Numbers of changes, watchers' cursors, what "conflicts" and "rejected" list, and the lines of backups go on. Records move into PostgreSQL, or out of it, by a second node that joins and syncs. From then on the node opens the new store by itself: take a --store that says otherwise out of its flags, environment and configuration.

Examples:
    syncd migrate pebble
    syncd migrate badger --data-dir /srv/notes`
}

// Run moves the records.
func (c migrateCmd) Run(ctx context.Context, a *app) error {
	bar := a.bars().Bytes("migrate", 0)
	m, err := offline.Migrate(ctx, a.DataDir, ondisk.Kind(c.Kind), offline.MigrateOptions{Progress: bar.Set})
	bar.Done()
	return a.answer(err, m, func() {
		t := a.table("", "")
		t.row("from", string(m.From))
		t.row("to", string(m.To))
		t.row("namespaces", strconv.Itoa(m.Namespaces))
		t.row("records", strconv.FormatInt(m.Records, 10)+", their members' lists included")
		t.row("bytes", size(m.Bytes)+", compared")
		t.print()
	})
}
