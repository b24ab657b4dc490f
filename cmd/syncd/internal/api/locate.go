package api

import (
	"time"

	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Located is where a key of a namespace of shards is, and what its hosts say of it.
type Located struct {
	Key
	Shard  int         `json:"shard"`
	Hosts  []string    `json:"hosts" doc:"the members that hold the shard; while it moves, its old hosts and its new ones; none: no layout is known here yet"`
	Moving bool        `json:"moving,omitempty" doc:"the shard moves: its old hosts and its new ones differ"`
	Holds  *Head       `json:"holds,omitempty" doc:"what the key was found to hold; absent if that is nothing"`
	Asked  []LocatedAt `json:"asked" doc:"the hosts that were asked, this node among them if it is one"`
	// Locator is what the locator says.
	Locator *LocatorSays `json:"locator,omitempty" doc:"what the locator says, on which reads at level one rest; absent if the namespace has none"`
}

// LocatorSays is where a key is by what this node has heard from a host of its shard.
type LocatorSays struct {
	Where string `json:"where" enum:"unknown,nowhere,in a shard,here" doc:"here: this node is a whole host of the key's shard, and reads its own records; unknown: hosts are asked"`
	Shard int    `json:"shard,omitempty" doc:"that of the value, where it is in a shard"`
	Host  string `json:"host,omitempty" doc:"the host that was heard last; absent: none was"`
	Age   string `json:"age,omitempty" doc:"how long ago that host was asked for what it has said"`
	Fresh bool   `json:"fresh,omitempty" doc:"that was short enough ago for a key to be nowhere"`
}

// LocatedAt is what one host has answered.
type LocatedAt struct {
	Peer    string `json:"peer"`
	Old     bool   `json:"old" doc:"it is one of the shard's old hosts; at rest they are the new ones, too"`
	New     bool   `json:"new" doc:"it is one of the shard's new hosts"`
	Whole   bool   `json:"whole" doc:"it has all that it must have, so that its answer counts as an old host's"`
	Version string `json:"version,omitempty" doc:"of the record that it holds; absent: it holds none, or has not answered"`
	Took    string `json:"took,omitempty" doc:"how long its answer took"`
	Error   string `json:"error,omitempty" doc:"why it has not answered; absent if it has"`
}

// LocatedOf is the JSON form.
func LocatedOf(key []byte, l *status.Located) Located {
	out := Located{Key: KeyOf(key), Shard: l.Shard, Hosts: []string{}, Moving: l.Moving, Asked: []LocatedAt{}}
	for _, id := range l.Hosts {
		out.Hosts = append(out.Hosts, id.String())
	}
	if r := l.Record; r != nil {
		out.Holds = headOf(&reconcile.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires})
	}
	if s := l.Locator; s != nil {
		out.Locator = &LocatorSays{Where: s.Where, Shard: s.Shard, Fresh: s.Fresh}
		if s.Age > 0 {
			out.Locator.Host, out.Locator.Age = s.Host.String(), s.Age.Round(time.Millisecond).String()
		}
	}
	for _, at := range l.Asked {
		one := LocatedAt{Peer: at.Peer.String(), Old: at.Old, New: at.New, Whole: at.Whole}
		if !at.Version.IsZero() {
			one.Version = at.Version.String()
		}
		if at.Took > 0 {
			one.Took = at.Took.Round(time.Microsecond).String()
		}
		if at.Err != nil {
			one.Error = at.Err.Error()
		}
		out.Asked = append(out.Asked, one)
	}
	return out
}
