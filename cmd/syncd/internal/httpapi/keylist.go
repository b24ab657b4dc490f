package httpapi

import (
	"context"
	"encoding/base64"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// maxPage bounds a page of keys.
const maxPage = 10_000

type listInput struct {
	NS     string `path:"ns" doc:"the namespace's local name"`
	Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	Cursor string `query:"cursor" doc:"the cursor of the page before"`
	Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many keys at most"`
}

func (s *server) list(ctx context.Context, in *listInput) (out api.KeyList, err error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return out, err
	}
	after, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil {
		return out, problem.Usage("the cursor %q is not one of this API's", in.Cursor)
	}
	out.Keys = []api.KeyInfo{}
	limit := min(in.Limit, maxPage)
	size := 0
	for rec, err := range ns.Scan(ctx, []byte(in.Prefix), peer.After(after), peer.Sizes(&size)) {
		if err != nil {
			return out, err
		}
		if len(out.Keys) == limit {
			last := out.Keys[limit-1].Bytes()
			out.Cursor = base64.RawURLEncoding.EncodeToString(last)
			break
		}
		out.Keys = append(out.Keys, api.KeyInfoOf(&rec, size))
	}
	return out, nil
}
