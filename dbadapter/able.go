package dbadapter

import "context"

// Able is a Store that asks another program whether it works now; see Roomer for one that
// asks the system. Not every store is one of the two.
type Able interface {
	Store
	// Able is nil while the store reads and takes writes, as far as it can tell without
	// either. Else it says why not, as a write would: ErrAway where its database is away,
	// ErrLimit where it is full. It is asked every few seconds, also while writes wait.
	Able(ctx context.Context) error
}
