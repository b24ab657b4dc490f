package refusals

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// ErrFull says why a record is declined: only keys that were chosen for it share an
// index in such a number.
var ErrFull = fmt.Errorf("%w: %d other records share its index", dbadapter.ErrLimit, dbadapter.MaxBucket)

// Refusal is why a record is not admitted. Err is nil where it need not be listed.
type Refusal struct {
	Reason wire.Reason
	Err    error
}

// Refuse is a refusal in words.
func Refuse(reason wire.Reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Errorf(format, args...)}
}
