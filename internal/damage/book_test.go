package damage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
)

// What is met while a verification runs is not ended by it.
func TestDamageMetMeanwhile(t *testing.T) {
	b := NewBook(slog.New(slog.DiscardHandler), time.Now, func(func()) {})
	id := dbadapter.NamespaceID{1}
	mark := b.Mark()
	err := b.Met(id, "notes", fmt.Errorf("read: %w", dbadapter.ErrCorrupt))
	if again := b.Met(id, "notes", fmt.Errorf("and a caller of it: %w", err)); !errors.Is(again, dbadapter.ErrCorrupt) || b.Of(id).Findings != 1 {
		t.Errorf("what was handed on is counted again: %+v", b.Of(id))
	}
	if err := b.Verified(id, mark, nil); err != nil || b.Of(id) == nil {
		t.Errorf("%v, %+v", err, b.Of(id))
	}
	if err := b.Verified(id, b.Mark(), nil); err != nil || b.Of(id) != nil {
		t.Errorf("%v, %+v", err, b.Of(id))
	}
	for _, other := range []error{nil, dbadapter.ErrNotFound, backup.ErrDamaged} {
		if err := b.Met(id, "notes", other); err != other || b.Of(id) != nil {
			t.Errorf("%v is %v, and %+v", other, err, b.Of(id))
		}
	}
}

// What is met before the book is read, as while the store is opened, is added to what it
// holds, and outlasts a restart.
func TestDamageMetBeforeTheBookIsRead(t *testing.T) {
	file := durable.File{Path: filepath.Join(t.TempDir(), folder.DamageFile), Kind: "damage", Owner: "me"}
	now := time.UnixMilli(1_800_000_000_000).UTC()
	var aside []func()
	open := func() *Book {
		return NewBook(slog.New(slog.DiscardHandler), func() time.Time { return now }, func(fn func()) { aside = append(aside, fn) })
	}
	finish := func() {
		for _, fn := range aside {
			fn()
		}
		aside = nil
	}
	b := open()
	_ = b.Load(file, "me")
	_ = b.Met(dbadapter.NamespaceID{}, "", fmt.Errorf("first: %w", dbadapter.ErrCorrupt))
	finish()
	now = now.Add(time.Hour)
	b = open()
	_ = b.Met(dbadapter.NamespaceID{}, "", fmt.Errorf("second: %w", dbadapter.ErrCorrupt))
	finish()
	_ = b.Load(file, "me")
	finish()
	for _, when := range []string{"", " and a restart"} {
		d := b.Of(dbadapter.NamespaceID{})
		if d.Findings != 2 || len(d.Found) != 2 || !strings.HasPrefix(d.Found[0], "first") || !d.At.Equal(now.Add(-time.Hour)) {
			t.Errorf("after a finding, another one before the book is read%s: %+v", when, d)
		}
		b = open()
		_ = b.Load(file, "me")
	}
}

// A book that could not be written is written when the node closes.
func TestDamageThatCouldNotBeNoted(t *testing.T) {
	file := durable.File{Path: filepath.Join(t.TempDir(), "later", folder.DamageFile), Kind: "damage", Owner: "me"}
	var save func()
	b := NewBook(slog.New(slog.DiscardHandler), time.Now, func(fn func()) { save = fn })
	_ = b.Load(file, "me")
	_ = b.Met(dbadapter.NamespaceID{}, "", fmt.Errorf("read: %w", dbadapter.ErrCorrupt))
	save()
	if err := os.Mkdir(filepath.Dir(file.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file.Path); err != nil {
		t.Error(err)
	}
}
