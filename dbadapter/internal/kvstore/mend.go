package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// mender makes the records of a namespace, its buckets and its head agree, after a
// rescue. Whether what it has is all that there was, the head tells: the sum of the
// digests, and their number. If it is, nothing was lost but what can be made anew. Else
// a record stays only if it is the newest of its key: outside of all gaps, or as its
// bucket says, which is. The others are set aside. Where a file is lost as a whole, all
// records could be older ones; those that are as their buckets say stay, and the store is
// one that was restored from a copy.
type mender struct {
	*rescue
	db        kv.DB
	namespace *namespace // of which only number and hasher are set
	of        *rescued

	sum      dbadapter.Digest
	count    uint64
	latest   dbadapter.Timestamp
	agreeing uint64 // records that are as their buckets say
	// bad are the indices that have to be looked at, each with the keys of records there.
	bad  map[dbadapter.Index][]string
	gone [][]byte // keys of records that cannot be read

	proven bool // nothing is lost
	view   kv.View
	loader kv.Loader
	loss   dbadapter.Loss
	meta   meta
}

func (m *mender) run(ctx context.Context) (dbadapter.Loss, error) {
	m.bad = map[dbadapter.Index][]string{}
	dangling, err := m.survey(ctx)
	if err != nil {
		return m.loss, err
	}
	was := m.of.meta
	m.proven = m.of.sure && m.sum == was.Digest && m.count == was.Records
	number := m.namespace.number
	if m.proven && len(m.bad) == 0 && len(m.gone) == 0 && !dangling && !m.touches(number, "cgklmu") {
		return m.loss, nil
	}
	// The log does not say what is lost, and the summary holds it.
	for _, kind := range []byte{layout.KindLog, kindKeeps, kindPart} {
		if err := m.db.DropPrefix(appendPrefix(nil, number, kind)); err != nil {
			return m.loss, err
		}
	}
	m.meta = was
	m.meta.First, m.meta.Latest = was.Seq+1, max(was.Latest, m.latest)
	m.meta.Log = dbadapter.NewLogID()
	if !m.of.sure {
		m.meta.Raised = max(was.Raised, dbadapter.TimestampAt(m.options.Now()))
	}
	err = m.mend(ctx)
	if m.loss.Records = -1; m.of.sure {
		m.loss.Records = int64(was.Records - m.meta.Records)
	} else if !m.of.blank && len(m.loss.Keys) == 0 && m.loss.SetAside == 0 && m.meta.Digest == was.Digest && m.meta.Records == was.Records {
		m.loss.Records = 0
	}
	return m.loss, err
}

// survey reads the head, and compares all records with their buckets. dangling: a
// bucket may name a record that is not there.
func (m *mender) survey(ctx context.Context) (dangling bool, err error) {
	m.view = m.db.View()
	defer m.view.Close()
	number := m.namespace.number
	if !m.of.sure {
		b, err := kv.Get(m.view, metaKey(number))
		if err != nil {
			return false, err
		}
		if b == nil || m.of.meta.decode(b, number) != nil {
			m.of.meta, m.of.blank = meta{Meta: layout.Meta{Seq: m.lastLogged(), First: 1}}, true
		} else {
			m.of.sure = !m.older && !m.doubtful(metaKey(number))
		}
	}
	if err := m.each(ctx, kindRecord, m.surveyRecord); err != nil {
		return false, err
	}
	named := uint64(0)
	err = m.each(ctx, layout.KindIndex, func(key, value []byte) error {
		return eachKey(value, number, dbadapter.Index(layout.Read48(key)), func([]byte) error { named++; return nil })
	})
	return named != m.agreeing, err
}

// each goes over the entries of a kind, by what stands behind their prefix.
func (m *mender) each(ctx context.Context, kind byte, do func(key, value []byte) error) error {
	prefix := appendPrefix(nil, m.namespace.number, kind)
	it := m.view.Iterate(prefix)
	defer it.Close()
	n := 0
	for it.Seek(prefix); it.Valid(); it.Next() {
		if n++; n%loadPieces == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key := bytes.Clone(it.Key()[prefixSize:])
		if err := it.Value(func(value []byte) error { return do(key, bytes.Clone(value)) }); err != nil {
			return err
		}
	}
	return it.Err()
}

// lastLogged is the sequence number to go on from where the head is lost: beyond all
// that the log has, by more than what can have followed it.
func (m *mender) lastLogged() (seq uint64) {
	prefix := appendPrefix(nil, m.namespace.number, layout.KindLog)
	it := m.view.Iterate(prefix)
	defer it.Close()
	for it.Seek(prefix); it.Valid(); it.Next() {
		if key := it.Key(); len(key) == prefixSize+8 {
			seq = binary.BigEndian.Uint64(key[prefixSize:])
		}
	}
	return seq + 1<<32
}

func (m *mender) surveyRecord(key, value []byte) error {
	r, err := m.namespace.decode(m.view, key, value)
	if err != nil {
		if !errors.Is(err, dbadapter.ErrCorrupt) {
			return err
		}
		m.gone = append(m.gone, key)
		m.gaps = append(m.gaps, kv.Gap{Where: "the record " + damage.Quote(key), From: m.recordKey(key), To: kv.After(m.recordKey(key))})
		return nil
	}
	m.sum, m.count, m.latest = m.sum.Add(r.Digest), m.count+1, max(m.latest, r.Version.Clock)
	b, held, err := m.bucket(r.Index)
	if err != nil {
		return err
	}
	agrees := b != nil && slices.ContainsFunc(held, func(h commit.Held) bool { return bytes.Equal(h.Record.Key, key) })
	if agrees && len(held) == 1 {
		agrees = dbadapter.PairOf(m.namespace.hasher, &r).Checksum == b.sum
	} else if agrees {
		all, err := m.namespace.held(m.view, r.Index)
		if err != nil && !errors.Is(err, dbadapter.ErrCorrupt) {
			return err
		}
		agrees = err == nil && len(all) > 0
	}
	if agrees {
		m.agreeing++
	}
	if !agrees || m.doubtful(m.recordKey(key)) && m.doubtful(appendIndexKey(nil, m.namespace.number, r.Index)) {
		m.bad[r.Index] = append(m.bad[r.Index], string(key))
	}
	return nil
}

func (m *mender) recordKey(key []byte) []byte {
	return append(appendPrefix(nil, m.namespace.number, kindRecord), key...)
}

// bucket reads the entry of an index and the keys that it names. The entry is nil if it
// is missing or damaged.
func (m *mender) bucket(index dbadapter.Index) (*bucket, []commit.Held, error) {
	var held []commit.Held
	var sum dbadapter.Checksum
	entry, err := kv.Get(m.view, appendIndexKey(nil, m.namespace.number, index))
	if err == nil && entry != nil {
		held, sum, err = m.namespace.named(entry, index)
	}
	switch {
	case errors.Is(err, dbadapter.ErrCorrupt) || err == nil && held == nil:
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return &bucket{sum: sum}, held, nil
}

// mend writes what the survey has asked for.
func (m *mender) mend(ctx context.Context) error {
	m.view, m.loader = m.db.View(), m.disk.load(m.db)
	defer m.view.Close()
	defer m.loader.Cancel()
	slices.SortFunc(m.gaps, func(a, b kv.Gap) int { return bytes.Compare(a.From, b.From) })
	if err := m.recountKept(ctx); err != nil {
		return err
	}
	for _, key := range m.gone {
		if err := m.remove(key); err != nil {
			return err
		}
	}
	if err := m.each(ctx, layout.KindIndex, m.dangling); err != nil {
		return err
	}
	m.meta.Digest, m.meta.Records = m.sum, m.count
	for _, index := range slices.Sorted(maps.Keys(m.bad)) {
		if err := errors.Join(ctx.Err(), m.decide(index)); err != nil {
			return err
		}
	}
	if err := m.loader.Set(metaKey(m.namespace.number), m.meta.encode(m.namespace.number)); err != nil {
		return err
	}
	return m.loader.Flush()
}

// dangling asks for a look at a bucket that names a record which is not there.
func (m *mender) dangling(place, entry []byte) error {
	index := dbadapter.Index(layout.Read48(place))
	return eachKey(entry, m.namespace.number, index, func(key []byte) error {
		r, err := m.record(key)
		if err == nil && r == nil && m.bad[index] == nil {
			m.bad[index] = []string{}
		}
		return err
	})
}

// record reads a record; nil if it is not there, or cannot be read.
func (m *mender) record(key []byte) (*dbadapter.Hashed, error) {
	r, err := m.namespace.record(m.view, key)
	if errors.Is(err, dbadapter.ErrCorrupt) {
		return nil, nil
	}
	return r, err
}

func (m *mender) remove(key []byte) error {
	return errors.Join(m.loader.Delete(m.recordKey(key)), m.loader.Delete(tailKey(m.namespace.number, key)))
}
