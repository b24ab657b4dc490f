package httpapi_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// The list of members, the changes that an admin makes, and what is refused, with
// the status and the error that a client gets.
func TestMembers(t *testing.T) {
	s := serve(t, "")
	ctx := t.Context()
	got, err := client.Ask(ctx, s.client, api.ListMembers, api.MembersParams{NSParams: api.OfNS("notes")})
	if err != nil || len(got.Members) != 1 || !got.Members[0].Self || got.Members[0].Role != "admin" || got.Members[0].By != got.Members[0].ID || got.Members[0].Addrs == nil {
		t.Fatalf("members %+v, %v", got, err)
	}
	self := got.Members[0].ID
	other := "12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X"
	if _, err := client.Ask(ctx, s.client, api.SetMember, api.SetMemberParams{NSParams: api.OfNS("notes"), ID: other, Body: api.NewRole{Role: "write", Expires: "24h"}}); err != nil {
		t.Fatal(err)
	}
	got, err = client.Ask(ctx, s.client, api.ListMembers, api.MembersParams{NSParams: api.OfNS("notes"), All: true})
	if err != nil || len(got.Members) != 2 || len(got.Former)+len(got.Voided) > 0 {
		t.Errorf("members %+v, %v", got, err)
	}
	for _, m := range got.Members {
		if m.ID == other && (m.Role != "write" || m.By != self || m.Expires.Sub(m.Since).Hours() < 23) {
			t.Errorf("the new member %+v", m)
		}
	}
	if _, err := client.Ask(ctx, s.client, api.RemoveMember, api.RemoveParams{NSParams: api.OfNS("notes"), ID: other}); err != nil {
		t.Fatal(err)
	}
	got, err = client.Ask(ctx, s.client, api.ListMembers, api.MembersParams{NSParams: api.OfNS("notes"), All: true})
	if err != nil || len(got.Members) != 1 || len(got.Former) != 1 || got.Former[0].ID.String() != other || got.Former[0].By.String() != self {
		t.Errorf("members %+v, %v", got, err)
	}
	for name, c := range map[string]struct{ err, want error }{
		"a namespace that is not there": {second(client.Ask(ctx, s.client, api.ListMembers, api.MembersParams{NSParams: api.OfNS("other")})), problem.ErrNoNamespace},
		"no such role":                  {second(client.Ask(ctx, s.client, api.SetMember, api.SetMemberParams{NSParams: api.OfNS("notes"), ID: other, Body: api.NewRole{Role: "owner"}})), problem.ErrUsage},
		"no such duration":              {second(client.Ask(ctx, s.client, api.SetMember, api.SetMemberParams{NSParams: api.OfNS("notes"), ID: other, Body: api.NewRole{Role: "read", Expires: "soon"}})), problem.ErrUsage},
		"not an id":                     {second(client.Ask(ctx, s.client, api.SetMember, api.SetMemberParams{NSParams: api.OfNS("notes"), ID: "..", Body: api.NewRole{Role: "read"}})), problem.ErrUsage},
		"the only admin's role":         {second(client.Ask(ctx, s.client, api.SetMember, api.SetMemberParams{NSParams: api.OfNS("notes"), ID: self, Body: api.NewRole{Role: "read"}})), peer.ErrDenied},
		"the only admin leaves":         {second(client.Ask(ctx, s.client, api.RemoveMember, api.RemoveParams{NSParams: api.OfNS("notes"), ID: self})), peer.ErrDenied},
		"not a member":                  {second(client.Ask(ctx, s.client, api.RemoveMember, api.RemoveParams{NSParams: api.OfNS("notes"), ID: other})), peer.ErrNotFound},
		"no such ticket":                {second(client.Ask(ctx, s.client, api.Revoke, api.RevokeParams{NSParams: api.OfNS("notes"), ID: "0123456789abcdef"})), peer.ErrNotFound},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v; want %v", name, c.err, c.want)
		}
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, "/v1/ns/notes/members", "", http.StatusOK},
		{http.MethodPut, "/v1/ns/notes/members/" + other, `{"role":"read"}`, http.StatusNoContent},
		{http.MethodPut, "/v1/ns/notes/members/" + other, `{"role":"read","expire":"1h"}`, http.StatusUnprocessableEntity},
		{http.MethodDelete, "/v1/ns/notes/members/" + other, "", http.StatusNoContent},
		{http.MethodDelete, "/v1/ns/notes/members/" + other, "", http.StatusNotFound},
		{http.MethodDelete, "/v1/ns/notes/members/" + self, "", http.StatusForbidden},
		{http.MethodGet, "/v1/ns/notes/invites", "", http.StatusOK},
	} {
		if resp, body := s.do(t, c.method, c.path, c.body); resp.StatusCode != c.want {
			t.Errorf("%s %s %s: %s %s", c.method, c.path, c.body, resp.Status, body)
		}
	}
}

func second[T any](_ T, err error) error { return err }
