package node

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/internal/roster"
)

// A node may lose statements of the list of members to damage. It then denies the
// members that they list, itself perhaps, and no sync can give it anything back. So
// a copy of all statements stands beside the store, in a file of its own. The copy
// is no authority. What it holds was signed by admins, and counts by the same rules
// as when it arrived. What it lacks the control namespace has.

// recoverList adds to the set the statements of the copy that the control namespace has
// lost, and puts them back.
func (ns *Namespace) recoverList(ctx context.Context, listed [][]byte) error {
	missing := slices.DeleteFunc(slices.Clone(listed), func(value []byte) bool { return ns.roster.Has(roster.HashOf(value)) })
	if len(missing) > 0 {
		ns.roster.Load(slices.Values(missing))
		missing = slices.DeleteFunc(missing, func(value []byte) bool { return !ns.roster.Has(roster.HashOf(value)) })
		if _, err := ns.store(ctx, missing); err != nil {
			return err
		}
	}
	all := values(ns.roster)
	if len(all) == len(listed) && !slices.ContainsFunc(listed, func(value []byte) bool { return !ns.roster.Has(roster.HashOf(value)) }) {
		return nil
	}
	ns.keep(all)
	return nil
}

func (ns *Namespace) keep(statements [][]byte) {
	if ns.keepList != nil {
		ns.keepList(statements)
	}
}
