package offline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/backup"
)

// ErrBackupDamaged: a file of a backup is missing, or is not what was written. It
// is also dbadapter.ErrCorrupt.
var ErrBackupDamaged = backup.ErrDamaged

// ErrNoBackup: the folder holds no backup. It is also dbadapter.ErrNotFound.
var ErrNoBackup = backup.ErrNoBackup

// BackupOptions say how Node.Backup of package peer makes a backup.
type BackupOptions struct {
	// Full makes a generation that needs no other one before it. Default: what has
	// changed since the last generation in the folder, if that can be known.
	Full bool
	// Program is noted in the manifest, for people.
	Program string
	// Progress, if not nil, is called with the number of bytes written so far. It
	// must be quick.
	Progress func(bytes int64)
}

// Backup is one generation in a folder of backups.
type Backup struct {
	Generation int               `json:"generation"`
	Base       int               `json:"base" doc:"the generation whose changes this one goes on from; 0: this one is whole"`
	Node       string            `json:"node" doc:"the peer id"`
	Program    string            `json:"program" doc:"that made it"`
	Taken      time.Time         `json:"taken" doc:"the moment that it shows"`
	Bytes      int64             `json:"bytes" doc:"of its files, without the base's"`
	Namespaces []BackupNamespace `json:"namespaces"`
}

// BackupNamespace is what a backup holds of a namespace.
type BackupNamespace struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Records int64  `json:"records" doc:"tombstones included"`
}

// BackupOf is what a manifest says. Package peer makes the manifest of a backup that it takes.
func BackupOf(m *backup.Manifest) *Backup {
	b := &Backup{Generation: m.Generation, Base: m.Base, Node: m.Node, Program: m.Program, Taken: m.Taken, Bytes: m.Bytes(), Namespaces: []BackupNamespace{}}
	for _, ns := range m.Namespaces {
		if ns.Name == "" {
			continue
		}
		id := cmp.Or(ns.Of, ns.ID)
		at := slices.IndexFunc(b.Namespaces, func(other BackupNamespace) bool { return other.ID == id })
		if at < 0 {
			at = len(b.Namespaces)
			b.Namespaces = append(b.Namespaces, BackupNamespace{Name: ns.Name, ID: id})
		}
		b.Namespaces[at].Records += int64(ns.Records)
	}
	return b
}

// Backups lists the generations in a folder of backups, the oldest first. It reads
// their manifests only; VerifyBackups reads all.
func Backups(dir string) (out []*Backup, err error) {
	defer named(&err, "list the backups in %s", dir)
	_, manifests, err := manifestsIn(dir)
	if err != nil {
		return nil, err
	}
	out = make([]*Backup, 0, len(manifests))
	for _, m := range manifests {
		out = append(out, BackupOf(m))
	}
	return out, nil
}

// manifestsIn reads the manifests in a folder, and checks that the latest
// generation is there with all that it needs.
func manifestsIn(dir string) (*backup.Folder, []*backup.Manifest, error) {
	folder, err := backup.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	var manifests []*backup.Manifest
	for _, g := range folder.Generations {
		m, err := folder.Manifest(g)
		if err != nil {
			return nil, nil, err
		}
		manifests = append(manifests, m)
	}
	if folder.Latest > 0 {
		_, err = folder.Line(folder.Latest)
	}
	return folder, manifests, err
}

// VerifyBackups reads all files of all generations in a folder of backups, and compares
// them with their manifests. The function progress, if not nil, receives how many bytes
// of how many have been read. ErrBackupDamaged names the first file that is missing or
// is not what was written. With dbadapter.ErrFormat the files are whole, but this
// program cannot restore them; the error names one that can.
func VerifyBackups(ctx context.Context, dir string, progress func(read, of int64)) (out []*Backup, err error) {
	defer named(&err, "verify the backups in %s", dir)
	folder, manifests, err := manifestsIn(dir)
	if err != nil {
		return nil, err
	}
	out = make([]*Backup, 0, len(manifests))
	tick := ticker(manifests, progress)
	for _, m := range manifests {
		if err := folder.Verify(ctx, m, tick); err != nil {
			return nil, err
		}
		for from, err := range storeCopies(folder, []*backup.Manifest{m}, nil) {
			if err == nil {
				err = ondisk.CheckCopy(from)
			}
			if err != nil {
				return nil, fmt.Errorf("this program cannot restore backup %d, which %s has made, and its files are whole: %w", m.Generation, m.Program, err)
			}
		}
		out = append(out, BackupOf(m))
	}
	return out, nil
}

// ticker adds up what is read of the files of manifests.
func ticker(manifests []*backup.Manifest, progress func(read, of int64)) func(int) {
	if progress == nil {
		return nil
	}
	var read, of int64
	for _, m := range manifests {
		of += m.Bytes()
	}
	return func(n int) {
		read += int64(n)
		progress(read, of)
	}
}
