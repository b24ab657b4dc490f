package dbadapter

import "context"

// Able is a Store that can tell whether it works now. Not every store is one.
type Able interface {
	Store
	// Able is nil while the store reads and takes writes, as far as it can tell without
	// either. Else it says why not, as a write would: ErrAway where its database is away,
	// ErrLimit where its disk is full, or the error of the system. It is asked every few
	// seconds, also while writes wait.
	Able(ctx context.Context) error
}
