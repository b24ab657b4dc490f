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
)

// keptKind is one of the two lists of kept records.
type keptKind struct {
	name, title string
	entries     func(*peer.Namespace, context.Context) iter.Seq2[dbadapter.Kept, error]
	refused     func(*peer.Namespace) []peer.Rejection // nil: it has no such list
}

var keptKinds = []keptKind{
	{"conflicts", "Records that lost against a record whose writer had not seen them", (*peer.Namespace).Conflicts, nil},
	{"rejected", "Records that were set aside, and those that were refused", (*peer.Namespace).SetAside, (*peer.Namespace).Rejected},
}

type (
	keptListInput struct {
		NS     string `path:"ns" doc:"the namespace's local name"`
		Key    string `query:"key" doc:"only entries of the key of these bytes, percent-encoded"`
		Cursor uint64 `query:"cursor" doc:"the cursor of the page before"`
		Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many entries at most"`
	}
	keptInput struct {
		NS  string `path:"ns" doc:"the namespace's local name"`
		Seq uint64 `path:"seq" doc:"the entry's number"`
	}
	keptListOutput  struct{ Body api.KeptList }
	keptValueOutput struct{ Body api.KeptValue }
	restoredOutput  struct{ Body api.Restored }
)

func (s *server) registerKept() {
	for _, kind := range keptKinds {
		path := "/v1/ns/{ns}/" + kind.name
		huma.Register(s.api, huma.Operation{
			OperationID: kind.name, Method: http.MethodGet, Path: path,
			Summary: kind.title, Description: "They are kept on this node alone. The oldest come first.",
		}, func(ctx context.Context, in *keptListInput) (*keptListOutput, error) {
			ns, err := s.namespace(in.NS)
			if err != nil {
				return nil, err
			}
			return listKept(ns, kind.entries(ns, ctx), in, kind.refusedOf(ns))
		})
		huma.Register(s.api, huma.Operation{
			OperationID: "show-" + kind.name, Method: http.MethodGet, Path: path + "/{seq}", Summary: "One of them, with its value",
		}, func(ctx context.Context, in *keptInput) (*keptValueOutput, error) {
			ns, k, err := s.findKept(ctx, kind, in)
			if err != nil {
				return nil, err
			}
			return &keptValueOutput{api.KeptValueOf(ns, k)}, nil
		})
		huma.Register(s.api, huma.Operation{
			OperationID: "restore-" + kind.name, Method: http.MethodPost, Path: path + "/{seq}/restore",
			Summary: "Write it again, as a write of now, and forget the entry",
		}, func(ctx context.Context, in *keptInput) (*restoredOutput, error) {
			ns, k, err := s.findKept(ctx, kind, in)
			if err != nil {
				return nil, err
			}
			version, err := ns.RestoreKept(ctx, *k)
			out := &restoredOutput{}
			if !version.IsZero() {
				out.Body.Version = version.String()
			}
			return out, fail(err)
		})
		s.registerForget(kind)
	}
}

// refusedOf is what goes with the first page of the list.
func (k *keptKind) refusedOf(ns *peer.Namespace) []peer.Rejection {
	if k.refused == nil {
		return nil
	}
	return k.refused(ns)
}

func listKept(ns *peer.Namespace, entries iter.Seq2[dbadapter.Kept, error], in *keptListInput, refused []peer.Rejection) (*keptListOutput, error) {
	out := &keptListOutput{api.KeptList{Entries: []api.Kept{}}}
	if in.Cursor == 0 {
		for _, r := range refused {
			if in.Key == "" || in.Key == string(r.Key) {
				out.Body.Refused = append(out.Body.Refused, api.RejectionsOf([]peer.Rejection{r})...)
			}
		}
	}
	for k, err := range entries {
		if err != nil {
			return nil, fail(err)
		}
		if k.Seq <= in.Cursor || in.Key != "" && in.Key != string(k.Record.Key) {
			continue
		}
		if n := len(out.Body.Entries); n == min(in.Limit, maxPage) {
			out.Body.Cursor = out.Body.Entries[n-1].Seq
			break
		}
		out.Body.Entries = append(out.Body.Entries, api.KeptOf(ns, &k))
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
			return nil, nil, fail(err)
		}
		if k.Seq == in.Seq {
			return ns, &k, nil
		}
	}
	return nil, nil, fail(fmt.Errorf("entry %d of the %s of %s: %w", in.Seq, kind.name, in.NS, peer.ErrNotFound))
}
