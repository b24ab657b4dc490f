package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

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
