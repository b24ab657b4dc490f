package dbadapter

import (
	"context"
	"slices"
)

// Salvager is a store whose files can be made anew of what can still be read of them.
// Not every store is one.
type Salvager interface {
	Examiner
	// Salvage makes the files anew, without what is damaged, and says what is missing
	// since. What the caller computed of the records is to be computed anew. Writes wait
	// meanwhile, snapshots end with ErrClosed, and no other can be opened (ErrAway). A
	// crash leaves the files from before or the new ones. It takes as much room on the
	// disk as the store does.
	//
	// A record that may not be the newest of its key, since the one after it may be what
	// was lost, is set aside. Of what is missing nothing is known, not even whether it
	// was a tombstone: a node that goes on without it is one that was restored from a
	// copy. Latest, Ceiling and the sequence numbers stay; the change log is trimmed and
	// the summary is gone where something is missing.
	//
	// known are the hashers of namespaces that are not open; of one that is neither, the
	// records are taken over unchecked.
	//
	// keep, if it is not nil, is called with the folder of the files once these are closed
	// and before any of them changes, so that the caller can copy them. Its error ends the
	// salvage, and the store goes on with the files that it had.
	Salvage(ctx context.Context, known map[NamespaceID]Hasher, keep func(dir string) error) (*Salvaged, error)
}

// Salvaged says what a salvage left behind.
type Salvaged struct {
	// Damage are the damaged places, by file, MaxNamed of them at most.
	Damage []string
	// Older: so much could not be read that records may be older ones than those that
	// were held, as after a restore from a copy.
	Older bool
	// Lost are the namespaces that lack something since.
	Lost map[NamespaceID]Loss
}

// MaxNamed bounds how many keys, and places, a salvage names.
const MaxNamed = 1024

// Loss is what a namespace lacks after a salvage.
type Loss struct {
	// Records is how many fewer records there are, those set aside included; -1 if that
	// is not known.
	Records int64
	// Keys are those of records known to be missing, MaxNamed of them at most.
	Keys [][]byte
	// SetAside is how many records are in the kept log since they may not be the newest.
	SetAside int
	// Kept is how many entries of the kept log are gone.
	Kept int
}

// Plus adds what another namespace lacks.
func (l Loss) Plus(of Loss) Loss {
	if l.Records < 0 || of.Records < 0 {
		l.Records = -1
	} else {
		l.Records += of.Records
	}
	l.Keys = slices.Concat(l.Keys, of.Keys)
	l.Keys = l.Keys[:min(len(l.Keys), MaxNamed)]
	l.SetAside, l.Kept = l.SetAside+of.SetAside, l.Kept+of.Kept
	return l
}

// Any reports whether anything is missing.
func (l *Loss) Any() bool { return l.Records != 0 || len(l.Keys) > 0 || l.SetAside > 0 || l.Kept > 0 }
