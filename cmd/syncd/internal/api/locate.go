package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
)

// Located is where a key of a namespace of shards is, and what its hosts say of it.
type Located struct {
	Key
	Shard int         `json:"shard"`
	Hosts []string    `json:"hosts" doc:"the members that are to hold the shard, the one that others prefer first; none: no layout is known here yet"`
	Sure  bool        `json:"sure" doc:"a host that can be sure has said so"`
	Doubt string      `json:"doubt,omitempty" doc:"why it is not sure, for a person"`
	Here  bool        `json:"here" doc:"this node is a host, and its own answer is among them"`
	Holds *Head       `json:"holds,omitempty" doc:"what the key was found to hold; absent if that is nothing"`
	Asked []LocatedAt `json:"asked" doc:"the other members that were asked, in that order"`
}

// LocatedAt is what one member has answered.
type LocatedAt struct {
	Peer     string `json:"peer"`
	Answered bool   `json:"answered"`
	Host     bool   `json:"host" doc:"it is a host of the shard by its own list of members"`
	Settled  bool   `json:"settled" doc:"it can be sure of what it does not hold"`
	Version  string `json:"version,omitempty" doc:"of the record that it holds; absent: it holds none, or has not answered"`
	Deleted  bool   `json:"deleted,omitempty" doc:"it is that of a deletion"`
	Took     string `json:"took,omitempty" doc:"how long its answer took"`
	Error    string `json:"error,omitempty" doc:"why it has not answered; absent if it has, or was awaited no longer"`
}

// LocatedOf is the JSON form.
func LocatedOf(key []byte, l *peer.Located) Located {
	out := Located{Key: KeyOf(key), Shard: l.Shard, Hosts: []string{}, Sure: l.Sure, Doubt: l.Doubt, Here: l.Here, Asked: []LocatedAt{}}
	for _, id := range l.Hosts {
		out.Hosts = append(out.Hosts, id.String())
	}
	if r := l.Record; r != nil {
		out.Holds = headOf(&peer.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires})
	}
	for _, at := range l.Asked {
		one := LocatedAt{Peer: at.Peer.String(), Answered: at.Answered, Host: at.Host, Settled: at.Settled, Deleted: at.Deleted}
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
