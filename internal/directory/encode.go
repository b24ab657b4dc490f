package directory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/syncd-io/syncd/bfield/keyset"
)

// ErrMessage is returned for bytes that are no message of the feed.
var ErrMessage = errors.New("no message of the feed")

// Message is one of *Poll, *News, *Take and *Block. docs/PROTOCOL.md has their bytes.
type Message interface {
	appendTo(b []byte, shards int) ([]byte, error)
	parse(p *parser)
}

// The first bytes of messages, and flags.
const (
	kindPoll = iota + 1
	kindNews
	kindTake
	kindBlock

	flagAll    = 1
	flagWait   = 2
	flagBegins = 2
	flagMore   = 4
	flagBegun  = 1
	flagWide   = 1
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
	case kindBlock:
		m = &Block{}
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
	b = binary.BigEndian.AppendUint64(append(b, kindPoll), m.Log)
	return append(binary.AppendUvarint(b, m.Seq), flags(m.All, m.Wait)), nil
}

func (m *Poll) parse(p *parser) {
	m.Log, m.Seq = p.uint64(), p.uvarint()
	f := p.flags(flagAll | flagWait)
	m.All, m.Wait = f&flagAll != 0, f&flagWait != 0
}

func (m *News) appendTo(b []byte, shards int) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(append(b, kindNews), m.Log)
	b = binary.BigEndian.AppendUint64(b, m.Layout)
	b = append(binary.AppendUvarint(b, m.From), flags(m.All, m.Begins, m.More))
	b = binary.AppendUvarint(b, uint64(len(m.Events)))
	for _, e := range m.Events {
		b = append(binary.AppendUvarint(b, uint64(e.Home)), byte(e.Kind))
		switch e.Kind {
		case Changed:
			b = append(b, binary.BigEndian.AppendUint64(nil, uint64(e.Index))[2:]...)
			b = binary.AppendUvarint(binary.AppendUvarint(b, e.Was.wire()), e.Is.wire())
		case Opened:
			b = e.Sum.appendTo(b)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.Sums)))
	for _, s := range m.Sums {
		b = s.Sum.appendTo(binary.AppendUvarint(b, uint64(s.Home)))
	}
	return b, nil
}

func (m *News) parse(p *parser) {
	m.Log, m.Layout, m.From = p.uint64(), p.uint64(), p.uvarint()
	f := p.flags(flagAll | flagBegins | flagMore)
	m.All, m.Begins, m.More = f&flagAll != 0, f&flagBegins != 0, f&flagMore != 0
	if m.Log == 0 { // a poll of no log has it
		p.fail("the log 0")
	}
	n := p.count(MaxEvents)
	if m.Begins && (n > 0 || m.More || !m.All) || m.More && (n == 0 || m.All) {
		p.fail("%d events, flags %d", n, f)
	}
	for range n {
		e := Event{Home: p.home(), Kind: Kind(p.byte())}
		switch e.Kind {
		case Changed:
			e.Index, e.Was, e.Is = p.index(), p.code(), p.code()
			if e.Was == e.Is {
				p.fail("an event that changes nothing")
			}
		case Opened:
			e.Sum = p.sum()
		case Closed:
		default:
			p.fail("an event of kind %d", e.Kind)
		}
		m.Events = append(m.Events, e)
	}
	if m.To = m.From + uint64(n); m.To < m.From {
		p.fail("the log ends after 2^64")
	}
	sums := p.count(p.shards)
	if m.More && sums > 0 {
		p.fail("%d sums before the end", sums)
	}
	for i := range sums {
		m.Sums = append(m.Sums, SetSum{p.home(), p.sum()})
		if i > 0 && m.Sums[i].Home <= m.Sums[i-1].Home {
			p.fail("the sums do not ascend")
		}
	}
}

func (m *Take) appendTo(b []byte, _ int) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(append(b, kindTake), m.Log)
	b = append(binary.AppendUvarint(b, uint64(m.Home)), flags(m.At.Begun))
	if m.At.Begun {
		b = append(b, binary.BigEndian.AppendUint64(nil, m.At.After)[2:]...)
	}
	return b, nil
}

func (m *Take) parse(p *parser) {
	m.Log, m.Home = p.uint64(), p.home()
	if p.flags(flagBegun) != 0 {
		m.At = keyset.Cursor{Begun: true, After: uint64(p.index())}
	}
}

func (m *Block) appendTo(b []byte, shards int) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(append(b, kindBlock), m.Log)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.Home)), m.Seq)
	return appendRows(b, m.At, m.rows, m.Last, shards)
}

func (m *Block) parse(p *parser) {
	m.Log, m.Home, m.Seq = p.uint64(), p.home(), p.uvarint()
	m.rows, m.At, m.Last = p.rows(nil)
}

// appendRows appends rows behind a place: whether some are Shared; keyset's block; and what
// is said of each, in as many bits as a shard takes, one more if some are Shared.
func appendRows(b []byte, at keyset.Cursor, rs rows, last bool, shards int) ([]byte, error) {
	hashes, wide := make([]uint64, len(rs)), false
	for i, x := range rs {
		hashes[i] = uint64(x.index())
		wide = wide || x.code() == Shared
	}
	b = append(b, flags(wide))
	b, err := keyset.Append(b, at, hashes, last)
	if err != nil {
		return nil, err
	}
	var word uint64
	var used uint
	width := codeWidth(shards, wide)
	for _, x := range rs {
		value := uint64(x.code())
		if x.code() == Shared {
			value = uint64(shards)
		}
		word |= value << used
		for used += width; used >= 8; used -= 8 {
			b, word = append(b, byte(word)), word>>8
		}
	}
	if used > 0 {
		b = append(b, byte(word))
	}
	return b, nil
}

func codeWidth(shards int, wide bool) uint {
	width := uint(bits.Len(uint(shards - 1)))
	if wide {
		width++
	}
	return width
}

func (c Code) wire() uint64 {
	switch c {
	case Gone:
		return 0
	case Shared:
		return 1
	}
	return uint64(c) + 2
}

func (s Sum) appendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, s[0]), s[1])
}
