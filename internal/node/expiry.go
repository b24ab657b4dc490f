package node

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Present reports whether a record that is held reads as there, by this node's
// clock.
func (set *Set) Present(r *dbadapter.Record) bool { return set.ns.present(r) }

func (ns *Namespace) present(r *dbadapter.Record) bool {
	return !r.Deleted && !r.Expired(ns.node.Now())
}

// Absent says why a record that is held reads as absent: ErrDeleted, or ErrExpired
// by this node's clock; nil if it does not. The record stays what it is: it syncs,
// and a condition on its version holds, until all members are past it.
func (set *Set) Absent(r *dbadapter.Record) error { return set.ns.Absent(r) }

// Absent is that of each set.
func (ns *Namespace) Absent(r *dbadapter.Record) error {
	switch {
	case ns.present(r):
		return nil
	case r.Deleted:
		return fmt.Errorf("%w, by version %s", dbadapter.ErrDeleted, r.Version)
	default:
		return fmt.Errorf("%w at %s, version %s", dbadapter.ErrExpired, r.Expires.Time().Format(time.RFC3339Nano), r.Version)
	}
}

// CheckTTL says what is wrong with a draft's time to live.
func (d *Draft) CheckTTL() error {
	switch {
	case d.TTL < 0:
		return fmt.Errorf("%w: a time to live of %s; it must be positive", ErrInvalid, d.TTL)
	case d.TTL > MaxTTL:
		return fmt.Errorf("%w: a time to live of %s; at most %s is allowed", dbadapter.ErrLimit, d.TTL, MaxTTL)
	case d.TTL > 0 && d.Record.Deleted:
		return fmt.Errorf("%w: a tombstone has no time to live", ErrInvalid)
	}
	return nil
}

// expiry is the first whole millisecond that is a time to live from now.
func (set *Set) expiry(ttl time.Duration) dbadapter.Timestamp {
	return dbadapter.TimestampAt(set.ns.node.Now().Add(ttl + time.Millisecond - 1))
}
