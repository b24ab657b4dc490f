package httpapi

import (
	"context"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

func (s *server) registerPeers() {
	answers(s, api.GetStatus, func(context.Context, *api.None) (api.Status, error) { return api.StatusOf(s.Node), nil })
	answers(s, api.ListPeers, func(context.Context, *api.None) (api.Peers, error) { return api.Peers{Peers: s.Node.Peers()}, nil })
	answers(s, api.AddPeer, func(ctx context.Context, in *api.WithBody[api.NewPeer]) (api.PeerID, error) {
		id, err := s.Node.AddPeer(ctx, in.Body.Addr)
		return api.PeerID{ID: id.String()}, err
	})
	for _, r := range []struct {
		route api.Route[api.PeerParams, api.None]
		do    func(*peer.Node, context.Context, peer.ID) error
	}{
		{api.RemovePeer, (*peer.Node).RemovePeer}, {api.PausePeer, (*peer.Node).PausePeer}, {api.ResumePeer, (*peer.Node).ResumePeer},
	} {
		answers(s, r.route, func(ctx context.Context, in *api.PeerParams) (none api.None, err error) {
			id, err := api.ParseID(in.ID)
			if err != nil {
				return none, problem.Usage("%w", err)
			}
			return none, r.do(s.Node, ctx, id)
		})
	}
	for _, r := range []struct {
		route api.Route[api.NSParams, api.None]
		do    func(*peer.Namespace, context.Context) error
	}{
		{api.Pause, (*peer.Namespace).Pause}, {api.Resume, (*peer.Namespace).Resume},
	} {
		answers(s, r.route, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.None, error) {
			return api.None{}, r.do(ns, ctx)
		}))
	}
}
