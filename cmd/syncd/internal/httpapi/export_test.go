package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

// onFirst calls a function with the first bytes that come.
type onFirst struct {
	bytes.Buffer
	call func()
}

func (o *onFirst) Write(p []byte) (int, error) {
	if o.Len() == 0 {
		o.call()
	}
	return o.Buffer.Write(p)
}

// TestExportGoesOn: an export that an error ends midway says which, and one after its last key has the
// rest.
func TestExportGoesOn(t *testing.T) {
	s := serve(t, "")
	ns, err := s.node.Namespace("notes")
	if err != nil {
		t.Fatal(err)
	}
	const records = 40 // more than fits between server and client
	for i := range records {
		if _, err := ns.Put(t.Context(), fmt.Appendf(nil, "key %02d", i), bytes.Repeat([]byte("v"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	var rest bytes.Buffer
	if err := s.client.Export(t.Context(), api.ExportParams{NSParams: api.OfNS("notes"), After: "key 29"}, &rest); err != nil || bytes.Count(rest.Bytes(), []byte("\n")) != 10 || !bytes.HasPrefix(rest.Bytes(), []byte(`{"key":"key 30"`)) {
		t.Errorf("after key 29: %d bytes, %.40q, %v", rest.Len(), rest.Bytes(), err)
	}
	closed := make(chan struct{})
	out := &onFirst{call: func() {
		go func() {
			defer close(closed)
			_ = s.node.Close(t.Context())
		}()
		for !errors.Is(closing(ns), peer.ErrClosed) {
		}
	}}
	err = s.client.Export(t.Context(), api.ExportParams{NSParams: api.OfNS("notes")}, out)
	<-closed
	early, ok := errors.AsType[*client.ExportError](err)
	if !ok || !errors.Is(err, peer.ErrClosed) {
		t.Fatalf("an export of a node that closes: %v", err)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines == records || string(early.Last) != fmt.Sprintf("key %02d", lines-1) {
		t.Errorf("%d lines, and the last key is %q", lines, early.Last)
	}
}

// closing is ErrClosed once the namespace closes.
func closing(ns *peer.Namespace) error {
	_, err := ns.Cursor()
	return err
}
