package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// decide says of each record under an index whether it stays, and writes its bucket
// anew.
func (m *mender) decide(index dbadapter.Index) error {
	number := m.namespace.number
	b, named, err := m.bucket(index)
	if err != nil {
		return err
	}
	sure := b != nil && !m.doubtful(appendIndexKey(nil, number, index))
	held, err := m.under(index, named)
	if err != nil {
		return err
	}
	agrees := b != nil && len(held) == len(named) && commit.Checksum(m.namespace.hasher, held) == b.sum
	var stay []commit.Held
	for _, h := range held {
		listed := slices.ContainsFunc(named, func(n commit.Held) bool { return bytes.Equal(n.Record.Key, h.Record.Key) })
		newest := !m.doubtful(m.recordKey(h.Record.Key))
		switch {
		case m.proven, sure && agrees, !sure && newest,
			sure && listed && newest && len(named) > 1: // it is another one that is lost
			stay = append(stay, h)
			continue
		}
		m.lose(h.Record.Key)
		if err := m.setAside(&h.Record); err != nil {
			return err
		}
	}
	for _, n := range named {
		if !slices.ContainsFunc(held, func(h commit.Held) bool { return bytes.Equal(h.Record.Key, n.Record.Key) }) {
			m.lose(n.Record.Key)
		}
	}
	key := appendIndexKey(nil, number, index)
	if len(stay) == 0 {
		return m.loader.Delete(key)
	}
	return m.loader.Set(key, appendBucket(nil, number, index, commit.Checksum(m.namespace.hasher, stay), stay))
}

// under reads all records under an index, by key.
func (m *mender) under(index dbadapter.Index, named []commit.Held) (held []commit.Held, err error) {
	keys := slices.Clone(m.bad[index])
	for i := range named {
		keys = append(keys, string(named[i].Record.Key))
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		r, err := m.record([]byte(key))
		if err != nil {
			return nil, err
		}
		if r != nil {
			held = append(held, commit.Held{Record: *r})
		}
	}
	return held, nil
}

func (m *mender) lose(key []byte) {
	if len(m.loss.Keys) < dbadapter.MaxNamed {
		m.loss.Keys = append(m.loss.Keys, bytes.Clone(key))
	}
}

// setAside moves a record to the kept log.
func (m *mender) setAside(r *dbadapter.Hashed) error {
	m.loss.SetAside++
	m.meta.Records--
	m.meta.Digest = m.meta.Digest.Sub(r.Digest)
	number, l := m.namespace.number, commit.Leaver{Why: dbadapter.KeptSetAside, Record: *r}
	m.meta.Kept.Seq++
	m.meta.Kept.CountRecord(l.Why, &r.Record, 1)
	entry := appendKept(nil, number, m.meta.Kept.Seq, m.options.Now(), &l)
	if entry[0] == 1 {
		if err := m.loader.Set(keptKey(number, kindMore, l.Why, m.meta.Kept.Seq), entry[cut:]); err != nil {
			return err
		}
		entry = entry[:cut]
	}
	return errors.Join(m.loader.Set(keptKey(number, layout.KindKept, l.Why, m.meta.Kept.Seq), entry), m.remove(r.Key))
}

// recountKept counts the entries of the kept log that are left, and removes those that
// cannot be read, or were written ahead of a commit that is not there.
func (m *mender) recountKept(ctx context.Context) error {
	was, ahead := m.meta.Kept, m.meta.ahead
	m.meta.Kept, m.meta.ahead = layout.Kept{Seq: was.Seq}, 0
	number := m.namespace.number
	err := m.each(ctx, layout.KindKept, func(place, entry []byte) error {
		key := append(appendPrefix(nil, number, layout.KindKept), place...)
		k, err := m.namespace.keptEntry(m.view, key, entry)
		switch {
		case err != nil && !errors.Is(err, dbadapter.ErrCorrupt):
			return err
		case err == nil && (ahead == 0 || k.Seq < ahead):
			m.meta.Kept.Seq = max(m.meta.Kept.Seq, k.Seq)
			m.meta.Kept.CountRecord(k.Why, &k.Record, 1)
			return nil
		case len(key) == keptKeySize:
			m.meta.Kept.Seq = max(m.meta.Kept.Seq, binary.BigEndian.Uint64(place[1:]))
			more := append(appendPrefix(nil, number, kindMore), place...)
			return errors.Join(m.loader.Delete(key), m.loader.Delete(more))
		}
		return m.loader.Delete(key)
	})
	if left := m.meta.Kept.Conflicts + m.meta.Kept.SetAside; left < was.Conflicts+was.SetAside {
		m.loss.Kept = int(was.Conflicts + was.SetAside - left)
	}
	return err
}
