package status

import "time"

// Shards is how the shards of a namespace stand.
type Shards struct {
	Epoch    uint64 `json:"epoch" doc:"of the layout that counts here; 0: none is known"`
	Held     int    `json:"held" doc:"shards that this node holds"`
	Whole    int    `json:"whole" doc:"of these, those of which it has all that it must have"`
	Fetching int    `json:"fetching" doc:"shards that this node is a host of, and does not hold, or is not whole of yet"`
	Dropping int    `json:"dropping" doc:"shards that it holds until a majority of their new hosts has them"`
	Moving   int    `json:"moving" doc:"shards, of all, whose old hosts and new ones differ"`
	// Short: a host says that it holds a shard once it has begun to fetch it.
	Short int `json:"short" doc:"shards that fewer of their hosts say to hold than there are to be replicas, as far as this node has heard"`
}

// Layout says which members hold each shard, for now.
type Layout struct {
	Epoch uint64    `json:"epoch" doc:"counts the layouts of the namespace, from 1"`
	By    ID        `json:"by" doc:"the admin whose node stated it"`
	At    time.Time `json:"at"`
	Hosts [][]ID    `json:"hosts" doc:"of each shard, from 0; of one that moves, the old hosts"`
	Moves []Move    `json:"moves" doc:"the shards that move"`
}

// Move is a shard whose old hosts and new ones differ: requests need a majority of each. It
// ends once no new host is unready, and an admin's node is awake.
type Move struct {
	Shard   int  `json:"shard"`
	Old     []ID `json:"old" doc:"its hosts until now"`
	New     []ID `json:"new" doc:"its hosts once each of them is ready"`
	Unready []ID `json:"unready" doc:"the new hosts that have not said yet, as far as this node has heard, that they are ready"`
}

// Left is what is left of a shard that has lost a majority of its old hosts.
type Left struct {
	Shard int  `json:"shard"`
	Hosts []ID `json:"hosts" doc:"named as the shard's old hosts"`
	Of    int  `json:"of" doc:"how many old hosts the shard had"`
	Whole bool `json:"whole" doc:"they have all that they must have; otherwise what was acknowledged may be lost"`
}

// TooFew is peer.ErrTooFew with how many hosts of a key's shard have answered.
type TooFew struct {
	Answers string // "1/3"
	Text    string
	Err     error // peer.ErrTooFew
}

func (e *TooFew) Error() string { return e.Text }

// Unwrap makes it the error that it is.
func (e *TooFew) Unwrap() error { return e.Err }
