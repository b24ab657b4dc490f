package cli

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// byteSize is a flag's value such as 512MiB, 1GiB, 2G or a number of bytes. A unit
// without "i" is taken for the same: memory comes in powers of two.
type byteSize int64

var units = []struct {
	name  string
	shift uint
}{{"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}}

// UnmarshalText reads the size.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, shift := strings.TrimSpace(string(text)), uint(0)
	for _, u := range units {
		for _, suffix := range []string{u.name + "iB", u.name + "B", u.name} {
			if shift == 0 && strings.HasSuffix(number, suffix) {
				number, shift = strings.TrimSpace(strings.TrimSuffix(number, suffix)), u.shift
			}
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q: want a size such as 512MiB or 2GiB", text)
	}
	*b = byteSize(n << shift)
	return nil
}

// String writes the size in the largest unit that divides it.
func (b byteSize) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; b != 0 && b&(1<<u.shift-1) == 0 {
			return fmt.Sprintf("%d%siB", b>>u.shift, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// leastReserve is what some commits may take between two looks at the disk.
const leastReserve = 64 << 20

// check reports a size that a node does not run in, or a reserve of the disk that its
// store does not take.
func (b byteSize) check(flag string) error {
	least, who := byteSize(peer.MinMemory), "a daemon"
	if flag == "disk-reserve" {
		least, who = leastReserve, "the store"
	}
	if b < least {
		return problem.Usage("--%s: %s is too little; %s takes at least %s", flag, b, who, least)
	}
	return nil
}

// keepMemory keeps this process near a size until stop is called: Go's runtime
// collects garbage in time, as far as mapped files and the tables of the store leave it
// room, and what is free goes back to the system once the process is idle.
func keepMemory(target int64) (stop func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(target - target/4)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(idlePause)
		defer tick.Stop()
		var idle idleness
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if idle.begins(allocated()) {
				debug.FreeOSMemory()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

const (
	// idlePause is how long a process is looked at.
	idlePause = 10 * time.Second
	// idleBytes is what an idle process allocates in idlePause at most: background
	// syncs of equal sets, and status calls.
	idleBytes = 8 << 20
	// busyBytes of garbage are worth a collection of all.
	busyBytes = 64 << 20
)

// idleness decides when a process that has worked becomes idle.
type idleness struct {
	last  uint64 // bytes allocated, at the last look
	freed uint64 // the same, when memory was given back last
}

// begins takes how many bytes the process has allocated so far, once in idlePause.
func (i *idleness) begins(allocated uint64) bool {
	quiet := allocated-i.last <= idleBytes
	i.last = allocated
	if !quiet || allocated-i.freed < busyBytes {
		return false
	}
	i.freed = allocated
	return true
}

// allocated is how many bytes of the heap were ever given out.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// limitFlags bound the bandwidth of syncs.
type limitFlags struct {
	LimitSend        byteRate `help:"How many bytes a second syncs may send, at least 64KiB; 0 means no limit." default:"0" placeholder:"RATE" setting:""`
	LimitReceive     byteRate `help:"How many bytes a second syncs may receive." default:"0" placeholder:"RATE" setting:""`
	LimitPeerSend    byteRate `help:"How many bytes a second syncs may send to one peer." default:"0" placeholder:"RATE" setting:""`
	LimitPeerReceive byteRate `help:"How many bytes a second syncs may receive from one peer." default:"0" placeholder:"RATE" setting:""`
}

func (f *limitFlags) bandwidth() peer.Bandwidth {
	return peer.Bandwidth{
		Send: int64(f.LimitSend), Receive: int64(f.LimitReceive), PeerSend: int64(f.LimitPeerSend), PeerReceive: int64(f.LimitPeerReceive),
	}
}

// byteRate is a flag's value such as 512KiB or 2MiB/s, in bytes a second.
type byteRate int64

// UnmarshalText reads the rate.
func (r *byteRate) UnmarshalText(text []byte) error {
	var b byteSize
	if err := b.UnmarshalText([]byte(strings.TrimSuffix(string(text), "/s"))); err != nil {
		return fmt.Errorf("%q: want bytes a second, such as 512KiB or 2MiB/s", text)
	}
	*r = byteRate(b)
	return nil
}

// String writes the rate in the largest unit that divides it.
func (r byteRate) String() string { return byteSize(r).String() + "/s" }

// check reports a rate that a node does not sync at.
func (r byteRate) check(flag string) error {
	if r != 0 && r < peer.MinBandwidth {
		return problem.Usage("--%s: %s is too little; syncs take at least %s, and 0 means no limit", flag, r, byteRate(peer.MinBandwidth))
	}
	return nil
}
