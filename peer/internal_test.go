package peer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// scriptedStream is a stream whose deadlines and reads are the test's.
type scriptedStream struct {
	network.Stream
	deadlines []time.Time
}

func (s *scriptedStream) SetReadDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Read(b []byte) (int, error) { return 1, nil }

// A peer that drips bytes gains the time that they take at the least rate, and
// no more: the deadline of a frame does not move with each byte.
func TestDripGainsNoTime(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: s, idle: time.Second, rate: 1000}
	p.begin()
	for range 500 {
		if _, err := (*pacedReader)(&p).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := s.deadlines[0].Sub(p.start), s.deadlines[499].Sub(p.start); first != time.Second || last != time.Second+499*time.Millisecond {
		t.Errorf("the deadline moved from %s to %s", first, last)
	}
}

func (s *scriptedStream) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Write(b []byte) (int, error) { return len(b), nil }

// A peer that takes nothing has the idle time, and what the bytes take at the
// least rate.
func TestWritesHaveADeadline(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: s, idle: time.Hour, rate: 1}
	before := time.Now()
	if _, err := (*pacedWriter)(&p).Write(make([]byte, 3600)); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	if len(s.deadlines) != 1 || s.deadlines[0].Before(before.Add(2*time.Hour)) || s.deadlines[0].After(after.Add(2*time.Hour)) {
		t.Errorf("deadlines %v of a write at %s", s.deadlines, before)
	}
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := loadState(namespaceDir(dir, ns.ID()), ns.ID(), "")
	if err != nil {
		t.Fatal(err)
	}
	old := f.state.Format
	f.state.Format = node.ShardedFormat + 1
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer state: %v", err)
	}
	f.state.Format = old
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, addressBookFile), []byte("syncd file 2 peers - 0 14bfc8f70d29f918\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer address book: %v", err)
	}
}

// The decisions and the network name a node alike: by the same bytes, text and
// writer id.
func TestIDsAgree(t *testing.T) {
	for range 20 {
		key, err := freshIdentity()
		if err != nil {
			t.Fatal(err)
		}
		self, err := newIdentity(key)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := key.GetPublic().Raw()
		if err != nil {
			t.Fatal(err)
		}
		message, err := crypto.MarshalPublicKey(key.GetPublic())
		if err != nil {
			t.Fatal(err)
		}
		id := node.IDOf(raw)
		writer, err := id.Writer()
		sum := sha256.Sum256(message)
		if string(id) != string(self.id) || id.String() != self.id.String() || err != nil || uint64(writer) != binary.BigEndian.Uint64(sum[:]) {
			t.Errorf("the node %s is %s, and writes as %s, %v", self.id, id, writer, err)
		}
	}
}
