package api

import (
	"github.com/syncd-io/syncd/peer/status"
)

// Collection is how far the collection of deleted and expired records is.
type Collection struct {
	status.Collection
	Swept *status.Swept `json:"swept,omitempty" doc:"what a collection just did; absent from a dry run"`
}
