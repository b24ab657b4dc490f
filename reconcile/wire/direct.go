package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/multiformats/go-varint"
)

// MaxDirect is the most members of a namespace whose pushes go directly from their origin
// to each of them. A write is then sent at most 15 times by its origin, which takes a
// third of the bytes of a mesh. In a larger namespace the origin's own link would carry
// many times what it writes, and a mesh shares that out.
const MaxDirect = 16

// TopicSize is the length of a namespace's topic.
const TopicSize = 16

// Topic names a namespace to those that hold its secret.
type Topic [TopicSize]byte

// A stream of direct pushes carries messages, each behind its length as a uvarint. The
// length 0 is followed by the topic of all messages behind it, any other by a push.

// AppendTopic appends what tells the topic of the pushes that follow.
func AppendTopic(b []byte, t Topic) []byte { return append(append(b, 0), t[:]...) }

// AppendDirect appends a push to a stream.
func AppendDirect(b, push []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(push))), push...)
}

// ReadDirect reads the next push of a stream, and the topic if that changes; topic is the
// one before. What it returns shares no memory with r.
func ReadDirect(r *bufio.Reader, topic *Topic) (push []byte, err error) {
	for {
		n, err := readUvarint(r)
		switch {
		case err != nil:
			return nil, err
		case n > MaxPush:
			return nil, fmt.Errorf("%w: a push of %d bytes; at most %d are allowed", ErrFrame, n, MaxPush)
		case n > 0:
			push = make([]byte, n)
			_, err = io.ReadFull(r, push)
			return push, err
		}
		if _, err := io.ReadFull(r, topic[:]); err != nil {
			return nil, err
		}
	}
}

// readUvarint reads a number. io.EOF says that the stream has ended before it.
func readUvarint(r io.ByteReader) (uint64, error) {
	n, err := varint.ReadUvarint(r)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("%w: a length: %w", ErrFrame, err)
	}
	return n, err
}

// TakesKind says what a Takes tells.
type TakesKind uint8

// The kinds of Takes.
const (
	// TakesReady says that all which its sender takes as yet was told.
	TakesReady TakesKind = iota
	// TakesTopic says that its sender takes the pushes of a topic.
	TakesTopic
	// TakesNoMore says that it takes those of a topic no more.
	TakesNoMore
)

// Takes is what the receiver of direct pushes tells their sender.
type Takes struct {
	Kind  TakesKind
	Topic Topic // but for TakesReady
	// Links are of TakesTopic: the members, in binary, that take the pushes of the topic
	// which this member makes.
	Links [][]byte
}

// AppendTakes appends a Takes.
func AppendTakes(b []byte, t *Takes) []byte {
	b = append(b, byte(t.Kind))
	if t.Kind == TakesReady {
		return b
	}
	b = append(b, t.Topic[:]...)
	if t.Kind == TakesTopic {
		b = binary.AppendUvarint(b, uint64(len(t.Links)))
		for _, id := range t.Links {
			b = append(binary.AppendUvarint(b, uint64(len(id))), id...)
		}
	}
	return b
}

// ReadTakes reads the next Takes of a stream.
func ReadTakes(r *bufio.Reader) (*Takes, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	t := &Takes{Kind: TakesKind(kind)}
	switch t.Kind {
	case TakesReady:
		return t, nil
	case TakesTopic, TakesNoMore:
	default:
		return nil, fmt.Errorf("%w: takes of kind %d", ErrFrame, kind)
	}
	if _, err := io.ReadFull(r, t.Topic[:]); err != nil || t.Kind == TakesNoMore {
		return t, err
	}
	count, err := readUvarint(r)
	if err != nil {
		return nil, err
	}
	if count > MaxDirect {
		return nil, fmt.Errorf("%w: %d links; at most %d are allowed", ErrFrame, count, MaxDirect)
	}
	for range count {
		n, err := readUvarint(r)
		if err != nil {
			return nil, err
		}
		if n > MaxOrigin {
			return nil, fmt.Errorf("%w: a member's id of %d bytes; at most %d are allowed", ErrFrame, n, MaxOrigin)
		}
		id := make([]byte, n)
		if _, err := io.ReadFull(r, id); err != nil {
			return nil, err
		}
		t.Links = append(t.Links, id)
	}
	return t, nil
}
