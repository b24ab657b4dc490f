package httpapi

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

type batchInput struct {
	api.BatchParams
	RawBody []byte
	Body    []api.BatchItem
}

func (s *server) registerBatch() {
	op := operation(api.Batch)
	op.MaxBodyBytes = api.MaxBatchBody
	serve(s, op, ofNamespace(s, s.batch))
}

func (s *server) batch(ctx context.Context, ns *peer.Namespace, in *batchInput) (*output[api.Versions], error) {
	// The decoder of the body would put U+FFFD in the place of what is not Unicode, and
	// take the last of two fields of a name.
	if !jsontext.Value(in.RawBody).IsValid() {
		return nil, problem.Usage("the batch is not JSON of UTF-8 with each field once; give other bytes as base64, in key64 and value64")
	}
	var batch *peer.Batch
	err := ns.Batch(ctx, func(b *peer.Batch) error {
		batch = b
		for i := range in.Body {
			if err := addItem(b, &in.Body[i]); err != nil {
				return &peer.BatchError{Item: i, Key: in.Body[i].Key.Bytes(), Err: err}
			}
		}
		return nil
	})
	if err != nil {
		return nil, batchProblem(fail(err), err, batch)
	}
	return &output[api.Versions]{api.Versions{Versions: versionsOf(batch)}}, nil
}

func versionsOf(b *peer.Batch) []string {
	all := []string{}
	for _, v := range b.Versions() {
		all = append(all, v.String())
	}
	return all
}

// batchProblem names the item that failed, or the versions of what hosts hold, or may.
func batchProblem(failed, err error, batch *peer.Batch) error {
	p := *problem.From(failed)
	if errors.Is(err, peer.ErrUnconfirmed) && !errors.Is(err, peer.ErrConflict) {
		p.Versions = versionsOf(batch)
	}
	if item, ok := errors.AsType[*peer.BatchError](err); ok {
		p.Item = &item.Item
		if errors.Is(err, peer.ErrConflict) && !item.Held.IsZero() {
			p.Version = item.Held.String()
		}
	}
	return &p
}

// addItem adds an item of a request to a batch.
func addItem(b *peer.Batch, item *api.BatchItem) error {
	key := item.Key.Bytes()
	held, err := condition(item)
	if err != nil {
		return err
	}
	value := item.Value64
	switch {
	case item.Key.Key != nil && item.Key64 != nil:
		return problem.Usage("key and key64 exclude one another")
	case item.Delete && (item.Value != nil || value != nil || item.TTL != ""):
		return problem.Usage("delete goes with neither a value nor a ttl")
	case item.Delete && held != nil:
		b.DeleteIf(key, *held)
		return nil
	case item.Delete:
		b.Delete(key)
		return nil
	case item.Value != nil && item.Value64 != nil:
		return problem.Usage("value and value64 exclude one another")
	case item.Value != nil:
		value = []byte(*item.Value)
	case value == nil:
		return problem.Usage("an item has a value or value64, or delete")
	}
	ttl, err := duration("ttl", item.TTL)
	if err != nil {
		return err
	}
	if held == nil {
		b.Put(key, value, peer.TTL(ttl))
	} else {
		b.PutIf(key, value, *held, peer.TTL(ttl))
	}
	return nil
}

// condition is the version that the key of an item must hold; nil for any.
func condition(item *api.BatchItem) (*dbadapter.Version, error) {
	switch {
	case item.IfAbsent && item.IfVersion != "":
		return nil, problem.Usage("if_absent and if_version exclude one another")
	case item.IfAbsent:
		return &dbadapter.Version{}, nil
	case item.IfVersion == "":
		return nil, nil //nolint:nilnil // no condition
	}
	v, err := dbadapter.ParseVersion(item.IfVersion)
	if err != nil {
		return nil, problem.Usage("if_version: %w", err)
	}
	return &v, nil
}
