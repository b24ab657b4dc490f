package httpapi

import (
	"context"
	"fmt"
	"iter"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// keptKind is one of the two lists of kept records.
type keptKind struct {
	name    string
	kind    dbadapter.Why
	entries func(*peer.Namespace, context.Context) iter.Seq2[dbadapter.Kept, error]
	refused func(*peer.Namespace) []status.Rejection // nil: it has no such list
}

var keptKinds = []keptKind{
	{api.Conflicts, dbadapter.KeptConflict, (*peer.Namespace).Conflicts, nil},
	{api.Rejected, dbadapter.KeptSetAside, (*peer.Namespace).SetAside, (*peer.Namespace).Rejected},
}

func (s *server) registerKept() {
	for _, kind := range keptKinds {
		answers(s, api.ListKept(kind.name), ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.KeptListParams) (api.KeptList, error) {
			if in.Member != "" {
				return keptAt(ctx, ns, kind, in)
			}
			return s.listKept(ns, kind.entries(ns, ctx), in, kind.refusedOf(ns))
		}))
		answers(s, api.ShowKept(kind.name), ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.KeptParams) (out api.KeptValue, err error) {
			k, err := findKept(ctx, ns, kind, in)
			if err != nil {
				return out, err
			}
			value, err := ns.KeptValue(ctx, k)
			if err != nil {
				return out, err
			}
			return api.KeptValueOf(ns, k, value), nil
		}))
		answers(s, api.RestoreKept(kind.name), ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.KeptParams) (out api.Restored, err error) {
			k, err := findKept(ctx, ns, kind, in)
			if err != nil {
				return out, err
			}
			version, err := ns.RestoreKept(ctx, *k)
			if !version.IsZero() {
				out.Version = version.String()
			}
			return out, err
		}))
		answers(s, api.ForgetKept(kind.name), ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.KeptParams) (none api.None, err error) {
			k, err := findKept(ctx, ns, kind, in)
			if err != nil {
				return none, err
			}
			return none, ns.ForgetKept(ctx, k.Seq)
		}))
		answers(s, api.ForgetAllKept(kind.name), ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.ForgetParams) (out api.Forgotten, err error) {
			if out.Forgotten, err = forgetThrough(ctx, ns, kind, in.Through); err != nil {
				err = fmt.Errorf("%d entries of the %s of %s are forgotten: %w", out.Forgotten, kind.name, in.NS, err)
			}
			return out, err
		}))
	}
}

// refusedOf is what goes with the first page of the list.
func (k *keptKind) refusedOf(ns *peer.Namespace) []status.Rejection {
	if k.refused == nil {
		return nil
	}
	return k.refused(ns)
}

func (s *server) listKept(ns *peer.Namespace, entries iter.Seq2[dbadapter.Kept, error], in *api.KeptListParams, refused []status.Rejection) (api.KeptList, error) {
	out := api.KeptList{Entries: []api.Kept{}}
	if in.Cursor == 0 {
		for _, r := range refused {
			if in.Key == "" || in.Key == string(r.Key) {
				out.Refused = append(out.Refused, api.RejectionsOf([]status.Rejection{r})...)
			}
		}
	}
	self := ""
	if ns.Policy().Placement != nil {
		self = s.Node.ID().String()
	}
	for _, id := range ns.Keepers() {
		out.Others = append(out.Others, id.String())
	}
	for k, err := range entries {
		if err != nil {
			return out, err
		}
		if k.Seq <= in.Cursor || in.Key != "" && in.Key != string(k.Record.Key) {
			continue
		}
		if n := len(out.Entries); n == min(in.Limit, maxPage) {
			out.Cursor = out.Entries[n-1].Seq
			break
		}
		entry := api.KeptOf(ns, &k)
		entry.KeptBy = self
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

// keptAt lists what another member keeps.
func keptAt(ctx context.Context, ns *peer.Namespace, kind keptKind, in *api.KeptListParams) (api.KeptList, error) {
	out := api.KeptList{Entries: []api.Kept{}}
	id, err := api.ParseID(in.Member)
	if err != nil {
		return out, err
	}
	page, more, err := ns.KeptAt(ctx, id, kind.kind, in.Cursor)
	for i := range page {
		if out.Cursor = page[i].Seq; in.Key == "" || in.Key == string(page[i].Record.Key) {
			k := api.KeptOf(ns, &page[i].Kept)
			k.Size, k.KeptBy = int(page[i].Size), id.String()
			out.Entries = append(out.Entries, k)
		}
		if len(out.Entries) == min(in.Limit, maxPage) {
			more = more || i+1 < len(page)
			break
		}
	}
	if !more {
		out.Cursor = 0
	}
	return out, err
}

// findKept is the entry of that number.
func findKept(ctx context.Context, ns *peer.Namespace, kind keptKind, in *api.KeptParams) (*dbadapter.Kept, error) {
	for k, err := range kind.entries(ns, ctx) {
		if err != nil {
			return nil, err
		}
		if k.Seq == in.Seq {
			return &k, nil
		}
	}
	return nil, fmt.Errorf("entry %d of the %s of %s: %w", in.Seq, kind.name, in.NS, peer.ErrNotFound)
}

// forgetThrough forgets the entries of a kind up to a number, and returns how many.
func forgetThrough(ctx context.Context, ns *peer.Namespace, kind keptKind, through uint64) (forgotten int, err error) {
	for {
		seqs, err := firstKept(ctx, ns, kind, through)
		if err != nil || len(seqs) == 0 {
			return forgotten, err
		}
		if err := ns.ForgetKept(ctx, seqs...); err != nil {
			return forgotten, err
		}
		forgotten += len(seqs)
	}
}

// firstKept are the numbers of the oldest entries of a kind, up to a number.
func firstKept(ctx context.Context, ns *peer.Namespace, kind keptKind, through uint64) (seqs []uint64, err error) {
	for k, err := range kind.entries(ns, ctx) {
		if err != nil {
			return nil, err
		}
		if k.Seq > through || len(seqs) == maxPage {
			break
		}
		seqs = append(seqs, k.Seq)
	}
	return seqs, nil
}
