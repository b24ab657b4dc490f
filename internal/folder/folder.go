// Package folder is the data folder of a node: which files lie in it, and what each says.
//
//	identity.key                  the node's private key
//	store, store.cbor             the records, and in which folder they lie after a migration or a repair
//	namespaces/ID                 the secret and the state of a namespace, the copy of its list of members, the proofs of syncs
//	peers.cbor, damage.cbor       notes of peer: the address book, and what was met of damage
//	restoring, restored, renewed  notes for the next start of a node that was restored, or has a fresh key
//	damaged                       stores that a repair has replaced; they stay until a person removes them
//
// Package peer runs a node in the folder. Package peer/offline works on the folder of a node that
// does not run. Who changes the folder holds the lock of its store.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/roster"
)

// Names within the folder.
const (
	KeyFile         = "identity.key" // in libp2p's binary form
	StoreDir        = "store"
	DamagedDir      = "damaged" // where a repair puts a store; of a second one a number is appended
	AddressBookFile = "peers.cbor"
	DamageFile      = "damage.cbor"

	namespacesDir = "namespaces"
	storeFile     = "store.cbor"
	restoringFile = "restoring"
	restoredFile  = "restored"
	renewedFile   = "renewed"
)

// ErrExists: what is to be made is there already.
var ErrExists = errors.New("it exists already")

// ErrRepairable: the store cannot be opened for damage, and a repair gives the node a new one.
var ErrRepairable = errors.New("the store can be repaired")

// LoadNote reads a small file in CBOR.
func LoadNote(f durable.File, into any) error {
	data, _, err := f.Load()
	if err != nil {
		return err
	}
	if err := roster.Unmarshal(data, into); err != nil {
		return durable.Damaged(f.Path, "is damaged (%v)", err)
	}
	return nil
}

// SaveNote replaces a small file in CBOR.
func SaveNote(f durable.File, note any) error {
	b, err := cbor.Marshal(note)
	if err != nil {
		return err
	}
	return f.Save(b)
}

// Remove deletes a file, which need not be there, durably.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// SetAside ends the error of a file that is damaged, and that the node does without:
// the file gets another name. The text gone says what is not known without it.
func SetAside(log *slog.Logger, path string, err error, gone string) error {
	if !errors.Is(err, durable.ErrDamaged) {
		return err
	}
	to, failed := durable.SetAside(path)
	if failed != nil {
		return errors.Join(err, failed)
	}
	log.Warn("a file is set aside, and made anew: "+gone, slog.String("kept", to), slog.Any("error", err))
	return nil
}

// Later ends the error of a file that a start writes anew, as it was. On a full disk the node
// starts all the same.
func Later(log *slog.Logger, err error) error {
	if !durable.NoRoom(err) {
		return err
	}
	log.Warn("the disk is full: a file is left as it is until the next start", slog.Any("error", err))
	return nil
}

// Files reads what a backup has of a node but its key and its store: the address book and the
// files of namespaces, by their names in the folder.
func Files(dir string, ids []dbadapter.NamespaceID) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, id := range ids {
		if err := readFiles(Path(dir, id), dir, files); err != nil {
			return nil, err
		}
	}
	book, err := os.ReadFile(filepath.Join(dir, AddressBookFile))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	files[AddressBookFile] = book
	return files, err
}

// readFiles reads the files of a folder that a backup is to have, by their names within top.
func readFiles(dir, top string, into map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() || strings.HasSuffix(path, ".tmp") {
			continue // left by a crash, and replaced with the next write
		}
		if locator.IsCopy(e.Name()) {
			continue // 4.5 bytes a key, and a node that lacks it fetches it from others
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if into[filepath.ToSlash(name)], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes the names in the folder durable, and those of the namespaces.
func Sync(dir string) error {
	err := durable.SyncDir(filepath.Join(dir, namespacesDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(durable.SyncDir(dir), err)
}

// ForgetDamage removes what was met of damage, of a node whose files were made anew.
func ForgetDamage(dir string) error { return Remove(filepath.Join(dir, DamageFile)) }

// The note of a restore is named restoring while the restore goes on, so that no node opens
// a part of a copy. Then it is named restored until the node has taken notice.

// Restored says of which backup a node's folder was made.
type Restored struct {
	Generation int   `cbor:"2,keyasint"`
	Taken      int64 `cbor:"3,keyasint"` // the moment that the backup shows, in Unix milliseconds
}

// At is the moment that the backup shows.
func (r *Restored) At() time.Time { return time.UnixMilli(r.Taken).UTC() }

// BeginRestore notes that a restore goes on.
func BeginRestore(dir string, r Restored) error {
	return SaveNote(durable.File{Path: filepath.Join(dir, restoringFile), Kind: restoredFile}, r)
}

// EndRestore notes that a restore is complete.
func EndRestore(dir string) error {
	if err := os.Rename(filepath.Join(dir, restoringFile), filepath.Join(dir, restoredFile)); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// Restoring is the error of a folder in which a restore was cut short.
func Restoring(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil {
		return fmt.Errorf("%w: a restore into %s was cut short: empty the folder and restore again", dbadapter.ErrCorrupt, dir)
	}
	return nil
}

// ReadRestored reads the note of a restore that the node has not taken notice of; nil if there
// is none. Beside the error of a damaged note it says that there was a restore.
func ReadRestored(dir string) (*Restored, error) {
	if err := Restoring(dir); err != nil {
		return nil, err
	}
	r := new(Restored)
	err := LoadNote(durable.File{Path: filepath.Join(dir, restoredFile), Kind: restoredFile}, r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// Renewed reports whether the node has a fresh key since it last ran: then files of another
// node are its own.
func Renewed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, renewedFile))
	return err == nil
}

// Noticed removes the notes of a restore and of a fresh key. What follows from them is durable
// in the states of the namespaces.
func Noticed(dir string) error {
	return errors.Join(Remove(filepath.Join(dir, restoredFile)), Remove(filepath.Join(dir, renewedFile)))
}
