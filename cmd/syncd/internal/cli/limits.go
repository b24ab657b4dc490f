package cli

import (
	"fmt"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

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
