package httpapi

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// keptKind is one of the two lists of kept records.
type keptKind struct {
	name, title string
	kind        dbadapter.Why
	entries     func(*peer.Namespace, context.Context) iter.Seq2[dbadapter.Kept, error]
	refused     func(*peer.Namespace) []status.Rejection // nil: it has no such list
}

var keptKinds = []keptKind{
	{"conflicts", "Records that lost against a record whose writer had not seen them", dbadapter.KeptConflict, (*peer.Namespace).Conflicts, nil},
	{"rejected", "Records that were set aside, and those that were refused", dbadapter.KeptSetAside, (*peer.Namespace).SetAside, (*peer.Namespace).Rejected},
}

type (
	keptListInput struct {
		NS     string `path:"ns" doc:"the namespace's local name"`
		Key    string `query:"key" doc:"only entries of the key of these bytes, percent-encoded"`
		Cursor uint64 `query:"cursor" doc:"the cursor of the page before"`
		Member string `query:"member" doc:"list what this member keeps, instead of what this node does: it is asked; only where the namespace is cut into shards"`
		Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many entries at most"`
	}
	keptInput struct {
		NS  string `path:"ns" doc:"the namespace's local name"`
		Seq uint64 `path:"seq" doc:"the entry's number"`
	}
)

func (s *server) registerKept() {
	for _, kind := range keptKinds {
		path := "/v1/ns/{ns}/" + kind.name
		answers(s, huma.Operation{
			OperationID: kind.name, Method: http.MethodGet, Path: path,
			Summary: kind.title, Description: "Each node keeps its own; the oldest come first. In a namespace that is cut into shards each page names the other members that say that they keep some.",
		}, func(ctx context.Context, in *keptListInput) (api.KeptList, error) {
			ns, err := s.namespace(in.NS)
			if err != nil {
				return api.KeptList{}, err
			}
			if in.Member != "" {
				return keptAt(ctx, ns, kind, in)
			}
			return s.listKept(ns, kind.entries(ns, ctx), in, kind.refusedOf(ns))
		})
		answers(s, huma.Operation{
			OperationID: "show-" + kind.name, Method: http.MethodGet, Path: path + "/{seq}", Summary: "One of them, with its value",
		}, func(ctx context.Context, in *keptInput) (out api.KeptValue, err error) {
			ns, k, err := s.findKept(ctx, kind, in)
			if err != nil {
				return out, err
			}
			value, err := ns.KeptValue(ctx, k)
			if err != nil {
				return out, err
			}
			return api.KeptValueOf(ns, k, value), nil
		})
		answers(s, huma.Operation{
			OperationID: "restore-" + kind.name, Method: http.MethodPost, Path: path + "/{seq}/restore",
			Summary: "Write it again, as a write of now, and forget the entry",
		}, func(ctx context.Context, in *keptInput) (out api.Restored, err error) {
			ns, k, err := s.findKept(ctx, kind, in)
			if err != nil {
				return out, err
			}
			version, err := ns.RestoreKept(ctx, *k)
			if !version.IsZero() {
				out.Version = version.String()
			}
			return out, err
		})
		s.registerForget(kind)
	}
}

// refusedOf is what goes with the first page of the list.
func (k *keptKind) refusedOf(ns *peer.Namespace) []status.Rejection {
	if k.refused == nil {
		return nil
	}
	return k.refused(ns)
}

func (s *server) listKept(ns *peer.Namespace, entries iter.Seq2[dbadapter.Kept, error], in *keptListInput, refused []status.Rejection) (api.KeptList, error) {
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
func keptAt(ctx context.Context, ns *peer.Namespace, kind keptKind, in *keptListInput) (api.KeptList, error) {
	id, err := api.ParseID(in.Member)
	if err != nil {
		return api.KeptList{}, err
	}
	page, more, err := ns.KeptAt(ctx, id, kind.kind, in.Cursor)
	if err != nil {
		return api.KeptList{}, err
	}
	out := api.KeptList{Entries: []api.Kept{}}
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
	return out, nil
}

// findKept is the entry of that number.
func (s *server) findKept(ctx context.Context, kind keptKind, in *keptInput) (*peer.Namespace, *dbadapter.Kept, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, nil, err
	}
	for k, err := range kind.entries(ns, ctx) {
		if err != nil {
			return nil, nil, err
		}
		if k.Seq == in.Seq {
			return ns, &k, nil
		}
	}
	return nil, nil, fmt.Errorf("entry %d of the %s of %s: %w", in.Seq, kind.name, in.NS, peer.ErrNotFound)
}

type forgetInput struct {
	NS      string `path:"ns" doc:"the namespace's local name"`
	Through uint64 `query:"through" required:"true" minimum:"1" doc:"the number of the last entry to forget: what has come since it was listed stays"`
}

// registerForget serves what takes entries out of the list of a kind for good.
func (s *server) registerForget(kind keptKind) {
	path := "/v1/ns/{ns}/" + kind.name
	does(s, huma.Operation{
		OperationID: "forget-" + kind.name, Method: http.MethodDelete, Path: path + "/{seq}",
		Summary: "Forget one of them, for good",
	}, func(ctx context.Context, in *keptInput) error {
		ns, k, err := s.findKept(ctx, kind, in)
		if err != nil {
			return err
		}
		return ns.ForgetKept(ctx, k.Seq)
	})
	answers(s, huma.Operation{
		OperationID: "forget-all-" + kind.name, Method: http.MethodDelete, Path: path,
		Summary: "Forget them up to one, for good",
	}, func(ctx context.Context, in *forgetInput) (out api.Forgotten, err error) {
		ns, err := s.namespace(in.NS)
		if err != nil {
			return out, err
		}
		if out.Forgotten, err = forgetThrough(ctx, ns, kind, in.Through); err != nil {
			err = fmt.Errorf("%d entries of the %s of %s are forgotten: %w", out.Forgotten, kind.name, in.NS, err)
		}
		return out, err
	})
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
