package iblt

import "errors"

// Errors that callers branch on, with errors.Is.
var (
	// ErrTableConfig: a TableConfig describes no table, or another one.
	ErrTableConfig = errors.New("not a table's configuration")
	// ErrTableBytes: the bytes are not a table.
	ErrTableBytes = errors.New("not a table's bytes")
	// ErrNoValueCheck: a table without hashvalueSum was asked for what needs
	// it.
	ErrNoValueCheck = errors.New("the table has no checks of values")
	// ErrNoProducts: a table without products was asked for what needs them.
	ErrNoProducts = errors.New("the table has no products of keys and values")
)
