package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/golden"
)

// topicOf is a topic for tests.
func topicOf(n byte) (t Topic) {
	t[0], t[TopicSize-1] = n, 0xff
	return t
}

// directly is a stream of direct pushes, of two topics, with a push of each kind.
func directly() (stream []byte, topics []Topic, all [][]byte) {
	for i, m := range pushes() {
		topic := topicOf(byte(i / 2))
		if i%2 == 0 {
			stream = AppendTopic(stream, topic)
		}
		m.Origin = nil
		push := encodePush(m)
		stream = AppendDirect(stream, push)
		topics, all = append(topics, topic), append(all, push)
	}
	return stream, topics, all
}

func takes() []*Takes {
	return []*Takes{
		{Kind: TakesTopic, Topic: topicOf(1), Links: [][]byte{[]byte("a"), []byte("member")}},
		{Kind: TakesTopic, Topic: topicOf(2)},
		{Kind: TakesReady},
		{Kind: TakesNoMore, Topic: topicOf(1)},
	}
}

func TestDirectVectors(t *testing.T) {
	var b strings.Builder
	stream, topics, all := directly()
	b.WriteString("# A stream of direct pushes of two topics, each message on a line, and what their receiver tells. docs/protocol, \"Direct pushes\", has the layout.\n")
	r := bufio.NewReader(bytes.NewReader(stream))
	var topic, last Topic
	for i := range all {
		push, err := ReadDirect(r, &topic)
		if err != nil || !bytes.Equal(push, all[i]) || topic != topics[i] {
			t.Fatalf("push %d is read as %x of %x, %v", i, push, topic, err)
		}
		if topic != last {
			fmt.Fprintf(&b, "Topic\n  %s\n", hex.EncodeToString(AppendTopic(nil, topic)))
			last = topic
		}
		fmt.Fprintf(&b, "Push\n  %s\n", hex.EncodeToString(AppendDirect(nil, push)))
	}
	if _, err := ReadDirect(r, &topic); !errors.Is(err, io.EOF) {
		t.Errorf("the end is read as %v", err)
	}
	var told []byte
	for _, m := range takes() {
		told = AppendTakes(told, m)
		fmt.Fprintf(&b, "Takes%s\n  %s\n", fields(reflect.ValueOf(m).Elem()), hex.EncodeToString(AppendTakes(nil, m)))
	}
	r = bufio.NewReader(bytes.NewReader(told))
	for _, m := range takes() {
		if got, err := ReadTakes(r); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v is read as %+v, %v", m, got, err)
		}
	}
	golden.Compare(t, "testdata/direct.txt", b.String())
}

// What is cut off, too long, or not known is refused.
func TestDirectStreamsThatAreRefused(t *testing.T) {
	stream, _, all := directly()
	for n := range stream {
		r := bufio.NewReader(bytes.NewReader(stream[:n]))
		var topic Topic
		var err error
		read := 0
		for ; err == nil; read++ {
			_, err = ReadDirect(r, &topic)
		}
		if read > len(all) {
			t.Errorf("cut at %d: %d pushes", n, read)
		}
	}
	var topic Topic
	for what, b := range map[string][]byte{
		"a push that is too long":    {0x81, 0xc0, 0x04},
		"a number that is too long":  {0x80, 0x00},
		"a number beyond all bounds": bytes.Repeat([]byte{0xff}, 20),
	} {
		if _, err := ReadDirect(bufio.NewReader(bytes.NewReader(b)), &topic); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", what, err)
		}
	}
	many := &Takes{Kind: TakesTopic}
	for range MaxDirect + 1 {
		many.Links = append(many.Links, []byte("m"))
	}
	for what, b := range map[string][]byte{
		"another kind":   {1, byte(TakesNoMore) + 1},
		"no kind":        {0},
		"too many links": AppendTakes(nil, many),
		"a long link":    AppendTakes(nil, &Takes{Kind: TakesTopic, Links: [][]byte{make([]byte, MaxOrigin+1)}}),
	} {
		if m, err := ReadTakes(bufio.NewReader(bytes.NewReader(b))); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	for _, m := range takes() {
		b := AppendTakes(nil, m)
		for n := range b {
			if got, err := ReadTakes(bufio.NewReader(bytes.NewReader(b[:n]))); err == nil {
				t.Errorf("%+v cut at %d is read as %+v", m, n, got)
			}
		}
	}
}

func FuzzDirect(f *testing.F) {
	stream, _, _ := directly()
	f.Add(stream)
	for _, m := range takes() {
		f.Add(AppendTakes(nil, m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		var topic Topic
		for {
			push, err := ReadDirect(r, &topic)
			if err != nil {
				break
			}
			if len(push) == 0 || len(push) > MaxPush {
				t.Fatalf("a push of %d bytes", len(push))
			}
		}
		var again []byte
		r = bufio.NewReader(bytes.NewReader(data))
		for {
			m, err := ReadTakes(r)
			if err != nil {
				break
			}
			again = AppendTakes(again, m)
		}
		if !bytes.HasPrefix(data, again) {
			t.Errorf("%x is written again as %x", data, again)
		}
	})
}
