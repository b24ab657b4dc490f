package api

import (
	"time"

	"github.com/syncd-io/syncd/peer/offline"
)

// NewBackup asks for a backup.
type NewBackup struct {
	Dir  string `json:"dir" minLength:"1" doc:"absolute path of a folder on the daemon's machine: empty, absent, or with this node's backups"`
	Full bool   `json:"full,omitempty" doc:"make one that needs no backup before it"`
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

// BackupOf is the JSON form of a backup.
func BackupOf(b *offline.Backup) Backup {
	out := Backup{
		Generation: b.Generation, Base: b.Base, Node: b.Node, Program: b.Program, Taken: b.Taken, Bytes: b.Bytes,
		Namespaces: make([]BackupNamespace, 0, len(b.Namespaces)),
	}
	for _, ns := range b.Namespaces {
		out.Namespaces = append(out.Namespaces, BackupNamespace(ns))
	}
	return out
}
