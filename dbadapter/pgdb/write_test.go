package pgdb_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

var (
	hasher = dbadapter.NewHasher(dbadapter.Secret{1})
	id     = dbadapter.NamespaceID{1}
)

// keysOfWriter is how many keys each writer of a test has; a batch writes all.
const keysOfWriter = 8

// batchOf is a batch that gives all keys of a writer the number of the batch.
func batchOf(t testing.TB, writer, number int) []dbadapter.Write {
	t.Helper()
	var writes []dbadapter.Write
	for i := range keysOfWriter {
		r, err := dbadapter.Hash(hasher, dbadapter.Record{
			Key: fmt.Appendf(nil, "%d/%d", writer, i), Value: []byte(strconv.Itoa(number)),
			Version: dbadapter.Version{Clock: dbadapter.Timestamp(number) << 20, Writer: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, dbadapter.Write{Record: r})
	}
	return writes
}

// found is the number of a writer's last batch in a snapshot: all of its keys must
// be of the same.
func found(s dbadapter.Snapshot, writer int) (number int, err error) {
	var values []string
	for i := range keysOfWriter {
		r, err := s.Get(fmt.Appendf(nil, "%d/%d", writer, i))
		if err != nil && !errors.Is(err, dbadapter.ErrNotFound) {
			return 0, err
		}
		if i > 0 && string(r.Value) != values[0] {
			return 0, fmt.Errorf("writer %d has batch %q in part: %q", writer, values[0], r.Value)
		}
		values = append(values, string(r.Value))
	}
	if values[0] == "" {
		return 0, nil
	}
	return strconv.Atoi(values[0])
}

// foundIn is the same in a namespace as of now.
func foundIn(n dbadapter.Namespace, writer int) (int, error) {
	s, err := n.Snapshot()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return found(s, writer)
}

// nothingWritten reports whether an error vouches that nothing was written.
func nothingWritten(err error) bool { return strings.Contains(err.Error(), "nothing was written") }

func namespaceOf(t testing.TB, s dbadapter.Store) dbadapter.Namespace {
	t.Helper()
	n, err := s.Namespace(t.Context(), id, hasher, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
