package locator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

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
	// MaxMessage is the longest message in bytes: a Poll of placement.MaxShards sets has 86 KiB,
	// News 128 KiB, a Page 48 KiB.
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

// Message is one of *Poll, *News, *Take and *Page. docs/protocol has their bytes.
type Message interface {
	appendTo(b []byte, shards int) ([]byte, error)
	parse(p *parser)
}

// Mark stands for the rows, and the removals and lapses, by which a node goes: a host answers where its
// own is the same.
type Mark [8]byte

// Poll asks a host what has changed in sets since a place of its log.
type Poll struct {
	Mark Mark
	Sets []Since // ascending by set
}

// Since is how far the asker has come in a set.
type Since struct {
	Set      placement.Shard
	Log, Seq uint64
}

// News answers a Poll, set by set in its order; the last ones are left out where what changed in those before
// takes all that an answer may: they are to be asked for again. Apart: the host has another Mark, and says
// nothing else.
type News struct {
	Apart bool
	Sets  []SetNews
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
	Said    Said
	To      uint64
	More    bool
	Changes []Entry // ascending, as they are now; Gone takes an index away
}

// Take asks for the entries of a set from an index on, MaxPage at most. Where Upto is not 0, the asker has
// entries from From on up to before Upto, whose hash is Hash.
type Take struct {
	Mark       Mark
	Set        placement.Shard
	From, Upto dbadapter.Index
	Hash       uint64
}

// Page answers a Take.
type Page struct {
	Apart, NotWhole bool // and nothing else is said
	// Log and Seq are the place of the host's log as of which the page is.
	Log, Seq uint64
	// Equal: the host has what the asker has, up to before Upto.
	Equal   bool
	Entries []Entry
	Next    dbadapter.Index // where the set goes on; 0: it ends
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

// The first bytes of messages, and flags.
const (
	kindPoll = iota + 1
	kindNews
	kindTake
	kindPage

	flagApart    = 1
	flagNotWhole = 2
	flagEqual    = 4
	flagAlike    = 8 // all entries say the same
)

// Append appends a message, in a namespace of so many shards, to b.
func Append(b []byte, m Message, shards int) ([]byte, error) { return m.appendTo(b, shards) }

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
	p := &parser{rest: data[1:], shards: shards}
	if m.parse(p); p.err == nil && len(p.rest) > 0 {
		p.fail("%d bytes are left over", len(p.rest))
	}
	if p.err != nil {
		return nil, p.err
	}
	if again, err := m.appendTo(nil, shards); err != nil || !bytes.Equal(again, data) {
		return nil, fmt.Errorf("%w: it has another form than that of its content", ErrMessage)
	}
	return m, nil
}

func flags(set ...bool) (f byte) {
	for i, is := range set {
		if is {
			f |= 1 << i
		}
	}
	return f
}

func (m *Poll) appendTo(b []byte, _ int) ([]byte, error) {
	b = binary.AppendUvarint(append(append(b, kindPoll), m.Mark[:]...), uint64(len(m.Sets)))
	for _, s := range m.Sets {
		b = binary.BigEndian.AppendUint64(binary.AppendUvarint(b, uint64(s.Set)), s.Log)
		b = binary.AppendUvarint(b, s.Seq)
	}
	return b, nil
}

func (m *Poll) parse(p *parser) {
	m.Mark = p.mark()
	for range p.count(p.shards, 10) {
		m.Sets = append(m.Sets, Since{p.set(), p.uint64(), p.uvarint()})
		if n := len(m.Sets); n > 1 && m.Sets[n-1].Set <= m.Sets[n-2].Set {
			p.fail("the sets do not ascend")
		}
	}
}

func (m *News) appendTo(b []byte, _ int) ([]byte, error) {
	b = binary.AppendUvarint(append(b, kindNews, flags(m.Apart)), uint64(len(m.Sets)))
	for _, s := range m.Sets {
		if b = append(b, byte(s.Said)); s.Said != Changed {
			continue
		}
		b = append(binary.AppendUvarint(b, s.To), flags(s.More))
		b = binary.AppendUvarint(b, uint64(len(s.Changes)))
		for _, e := range s.Changes {
			b = append(b, binary.BigEndian.AppendUint64(nil, uint64(e.Index()))[2:]...)
			b = binary.BigEndian.AppendUint16(b, uint16(e.Code()))
		}
	}
	return b, nil
}

func (m *News) parse(p *parser) {
	m.Apart = p.flags(flagApart) != 0
	changes := 0
	for range p.count(p.shards, 1) {
		s := SetNews{Said: Said(p.byte())}
		if s.Said > NotWhole {
			p.fail("a set of which is said %d", s.Said)
		}
		if s.Said == Changed {
			s.To, s.More = p.uvarint(), p.flags(1) != 0
			for range p.count(MaxChanges-changes, 8) {
				s.Changes = append(s.Changes, p.change())
				if n := len(s.Changes); n > 1 && s.Changes[n-1].Index() <= s.Changes[n-2].Index() {
					p.fail("the changes do not ascend")
				}
			}
			changes += len(s.Changes)
		}
		m.Sets = append(m.Sets, s)
	}
	if m.Apart && len(m.Sets) > 0 {
		p.fail("a host by another row says something")
	}
}

func (m *Take) appendTo(b []byte, _ int) ([]byte, error) {
	b = binary.AppendUvarint(append(append(b, kindTake), m.Mark[:]...), uint64(m.Set))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.From)), uint64(m.Upto))
	return binary.BigEndian.AppendUint64(b, m.Hash), nil
}

func (m *Take) parse(p *parser) {
	m.Mark, m.Set = p.mark(), p.set()
	m.From, m.Upto, m.Hash = dbadapter.Index(p.uvarint()), dbadapter.Index(p.uvarint()), p.uint64()
	if m.From >= indexEnd || m.Upto > indexEnd || m.Upto != 0 && m.Upto <= m.From || m.Upto == 0 && m.Hash != 0 {
		p.fail("a page from %d to %d", m.From, m.Upto)
	}
}

func (m *Page) appendTo(b []byte, shards int) ([]byte, error) {
	alike := len(m.Entries) > 0
	for _, e := range m.Entries {
		alike = alike && e.Code() == m.Entries[0].Code()
	}
	b = append(b, kindPage, flags(m.Apart, m.NotWhole, m.Equal, alike))
	if m.Apart || m.NotWhole {
		return b, nil
	}
	b = binary.AppendUvarint(binary.BigEndian.AppendUint64(b, m.Log), m.Seq)
	if m.Equal {
		return b, nil
	}
	if b = binary.AppendUvarint(b, uint64(m.Next)); !alike {
		return appendEntries(b, before(m.Entries), m.Entries, true, shards)
	}
	indices := make([]uint64, len(m.Entries))
	for i, e := range m.Entries {
		indices[i] = uint64(e.Index())
	}
	return keyset.Append(binary.BigEndian.AppendUint16(b, uint16(m.Entries[0].Code())), before(m.Entries), indices, true)
}

// before is the place before a page's first entry, so that its gap is 0.
func before(entries []Entry) keyset.Cursor {
	if len(entries) == 0 || entries[0].Index() == 0 {
		return keyset.Cursor{}
	}
	return keyset.Cursor{Begun: true, After: uint64(entries[0].Index()) - 1}
}
