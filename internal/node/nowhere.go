package node

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// Where the placement has a locator, the hosts of each shard tell all nodes
// which keys it has, by the feed (telling.go). A read of a key that none of
// them tells of takes no request then; any other one goes to the hosts, as without a locator,
// and so does each write: arithmetic says where to.

// ToldAs is the home of a key and the index by which feeds tell of it.
func (ns *Namespace) ToldAs(key []byte) (home placement.Shard, index dbadapter.Index) {
	home = ns.Home(key)
	return home, ns.view(home).Keys.Hasher.Index(key)
}

// Nowhere reports whether no member holds anything under a key, not even a tombstone, that was
// acknowledged longer than directory.Fresh ago, by what a locator knows at a time of its clock:
// each member that may hold it has told so within that time. What this node itself holds, has
// written or has found lately is never nowhere. The placement has a locator.
func (ns *Namespace) Nowhere(l *directory.Locator, key []byte, now time.Duration) bool {
	home, index := ns.ToldAs(key)
	if l.Locate(home, index, now).Where != directory.Nowhere {
		return false
	}
	set := ns.held(home)
	if set == nil {
		return true
	}
	own, err := set.Held(key)
	return err == nil && own == nil
}

// Noticed tells a locator that a host holds something under a key, which this node has written or
// read there: the key is not nowhere here until feeds have told of it, for twice
// directory.Fresh at most.
func (ns *Namespace) Noticed(l *directory.Locator, key []byte, wrote bool, now time.Duration) {
	home, index := ns.ToldAs(key)
	switch where := l.Locate(home, index, now).Where; {
	case wrote:
		l.Wrote(home, index, home, now)
	case where != directory.In:
		l.Found(home, index, home, now)
	}
}
