package locator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/placement"
)

// ErrMessage is returned for bytes that are no message of the feed, and for answers that do not fit
// their questions.
var ErrMessage = errors.New("no message of the feed")

// Bounds of messages, and how long news counts.
const (
	// MaxMessage is the longest message in bytes: a Poll of placement.MaxShards sets has 88 KiB,
	// News 104 KiB, a Page 48 KiB.
	MaxMessage = 256 << 10
	// MaxChanges is the most changes of one News.
	MaxChanges = 4096
	// MaxPage is the most entries of one Page.
	MaxPage = 4096 // keyset.MaxKeys

	// Fresh is for how long what a host has said counts: a key is nowhere only where the poll was
	// sent no longer ago than that.
	Fresh = 5 * time.Second

	indexEnd = keyhash.P // of all indices
)

// Message is one of *Poll, *News, *Take and *Page: a byte that says which, and CBOR. docs/protocol has it.
type Message interface {
	kind() byte
	// check refuses what cannot be, in a namespace of so many shards.
	check(shards int) error
}

// Mark stands for the rows, and the removals and lapses, by which a node goes: a host answers where its
// own is the same.
type Mark [8]byte

// Poll asks a host what has changed in sets since a place of its log.
type Poll struct {
	Mark Mark    `cbor:"1,keyasint"`
	Sets []Since `cbor:"2,keyasint,omitempty"` // ascending by set
}

// Since is how far the asker has come in a set.
type Since struct {
	_        struct{} `cbor:",toarray"`
	Set      placement.Shard
	Log, Seq uint64
}

// News answers a Poll, set by set in its order; the last ones are left out where what changed in those before
// takes all that an answer may: they are to be asked for again.
type News struct {
	Sets []SetNews `cbor:"1,keyasint,omitempty"`
}

// Said is what a host says of a set.
type Said uint8

// What a host says of a set.
const (
	// Same: nothing has changed.
	Same Said = iota
	// Changed: up to To, of which More follows, or does not.
	Changed
	// OtherLog: the place that was asked for is of another log, or in this one no more.
	OtherLog
	// NotWhole: the host is no whole one of the set.
	NotWhole
)

// SetNews is what a host says of one set.
type SetNews struct {
	Said    Said    `cbor:"1,keyasint,omitempty"`
	To      uint64  `cbor:"2,keyasint,omitempty"`
	More    bool    `cbor:"3,keyasint,omitempty"`
	Changes []Entry `cbor:"4,keyasint,omitempty"` // ascending, as they are now; Gone takes an index away
}

// Take asks for the entries of a set from an index on, MaxPage at most. Where Upto is not 0, the asker has
// entries from From on up to before Upto, whose hash is Hash.
type Take struct {
	Mark Mark            `cbor:"1,keyasint"`
	Set  placement.Shard `cbor:"2,keyasint,omitempty"`
	From dbadapter.Index `cbor:"3,keyasint,omitempty"`
	Upto dbadapter.Index `cbor:"4,keyasint,omitempty"`
	Hash uint64          `cbor:"5,keyasint,omitempty"`
}

// Page answers a Take.
type Page struct {
	NotWhole bool `cbor:"1,keyasint,omitempty"` // and nothing else is said
	// Log and Seq are the place of the host's log as of which the page is.
	Log uint64 `cbor:"2,keyasint,omitempty"`
	Seq uint64 `cbor:"3,keyasint,omitempty"`
	// Equal: the host has what the asker has, up to before Upto.
	Equal   bool            `cbor:"4,keyasint,omitempty"`
	Entries []Entry         `cbor:"-"`
	Block   []byte          `cbor:"5,keyasint,omitempty"` // of the entries, as they travel; nil elsewhere
	Next    dbadapter.Index `cbor:"6,keyasint,omitempty"` // where the set goes on; 0: it ends
}

// HashOf stands for entries in a Take. Two pages have one hash with probability 2^-64; what rests on
// it rests on the host's word in any case.
func HashOf(entries []Entry) uint64 {
	b := make([]byte, 0, 8*len(entries))
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, uint64(e))
	}
	return xxh3.Hash(b)
}

// The first bytes of messages.
const (
	kindPoll = iota + 1
	kindNews
	kindTake
	kindPage
)

func (*Poll) kind() byte { return kindPoll }
func (*News) kind() byte { return kindNews }
func (*Take) kind() byte { return kindTake }
func (*Page) kind() byte { return kindPage }

// Append appends a message, in a namespace of so many shards, to b.
func Append(b []byte, m Message, shards int) ([]byte, error) {
	if p, ok := m.(*Page); ok && len(p.Entries) > 0 {
		block, err := appendEntries(nil, before(p.Entries), p.Entries, true, shards)
		if err != nil {
			return nil, err
		}
		with := *p
		with.Block = block
		m = &with
	}
	data, err := cbor.Marshal(m)
	return append(append(b, m.kind()), data...), err
}

// Parse reads a message of a namespace of so many shards. There is one form of each: other
// bytes are ErrMessage. It takes time and memory in proportion to the bytes, which are at
// most MaxMessage.
func Parse(data []byte, shards int) (Message, error) {
	if len(data) == 0 || len(data) > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes: want 1 to %d", ErrMessage, len(data), MaxMessage)
	}
	var m Message
	switch data[0] {
	case kindPoll:
		m = &Poll{}
	case kindNews:
		m = &News{}
	case kindTake:
		m = &Take{}
	case kindPage:
		m = &Page{}
	default:
		return nil, fmt.Errorf("%w: it is of kind %d", ErrMessage, data[0])
	}
	err := cbor.Unmarshal(data[1:], m) // what is not the deterministic form is refused below
	if err == nil {
		err = m.check(shards)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if again, err := Append(nil, m, shards); err != nil || !bytes.Equal(again, data) {
		return nil, fmt.Errorf("%w: it has another form than that of its content", ErrMessage)
	}
	return m, nil
}

func (m *Poll) check(shards int) error {
	for i, s := range m.Sets {
		if int(s.Set) >= shards || i > 0 && s.Set <= m.Sets[i-1].Set {
			return fmt.Errorf("set %d of %d, or sets that do not ascend", s.Set, shards)
		}
	}
	return nil
}

func (m *News) check(shards int) error {
	changes := 0
	for i := range m.Sets {
		s := &m.Sets[i]
		if changes += len(s.Changes); changes > MaxChanges || s.Said > NotWhole || s.Said != Changed && (s.To != 0 || s.More || s.Changes != nil) {
			return fmt.Errorf("%d of a set, with %d changes", s.Said, len(s.Changes))
		}
		for k, e := range s.Changes {
			if c := e.Code(); e.Index() >= indexEnd || int(c) >= shards && c != Gone && c != Shared || k > 0 && e.Index() <= s.Changes[k-1].Index() {
				return fmt.Errorf("shard %d of %d of index %d, or changes that do not ascend", c, shards, e.Index())
			}
		}
	}
	if len(m.Sets) > shards {
		return fmt.Errorf("news of %d sets of %d", len(m.Sets), shards)
	}
	return nil
}

func (m *Take) check(shards int) error {
	if int(m.Set) >= shards || m.From >= indexEnd || m.Upto > indexEnd || m.Upto != 0 && m.Upto <= m.From || m.Upto == 0 && m.Hash != 0 {
		return fmt.Errorf("a page of set %d of %d from %d to %d", m.Set, shards, m.From, m.Upto)
	}
	return nil
}

func (m *Page) check(shards int) (err error) {
	if m.Block != nil {
		if m.Entries, _, _, _, err = parseEntries(m.Block, shards); err != nil {
			return err
		}
		m.Block = nil
	}
	n := len(m.Entries)
	switch says := m.Log != 0 || m.Seq != 0 || m.Equal || n > 0 || m.Next != 0; {
	case m.NotWhole && !says:
	case m.NotWhole, m.Log == 0, m.Equal && (n > 0 || m.Next != 0), m.Next >= indexEnd, n > 0 && m.Next != 0 && m.Next <= m.Entries[n-1].Index():
		return fmt.Errorf("a page of log %d with %d entries, behind which %d follows", m.Log, n, m.Next)
	}
	return nil
}

// before is the place before a page's first entry, so that its gap is 0.
func before(entries []Entry) keyset.Cursor {
	if entries[0].Index() == 0 {
		return keyset.Cursor{}
	}
	return keyset.Cursor{Begun: true, After: uint64(entries[0].Index()) - 1}
}
