// Package changes watches a set of records: it yields each key's latest state, first of
// what is held and then of what changes.
//
// The store keeps the order of changes, and no record that was overwritten. So a
// [Watcher] reads the log piece by piece. With each piece, a window, it reads what the
// keys hold in a snapshot that is no older. A change that another one of its key has
// followed is passed over: the later one is ahead, and its event says Coalesced.
//
// A watch from the start lists what is held, each part of it from a snapshot of its own.
// So a slow watcher holds no snapshot open. The changes that a part has shown are not
// yielded again.
//
// A [Cursor] names the log and a place in it, so nothing of a watch is kept between two
// connections. Where the log was trimmed beyond it, or is another one, it has expired
// ([ErrCursorExpired]).
//
// The watchers of a set share a [Feed]: one goroutine reads the end of the log for all of
// them, and wakes them in groups.
//
//	feed := changes.NewFeed(ctx, source, enter) // the store's observer calls Committed
//	err := feed.Watch(ctx, changes.FromStart, changes.Options{}, func(e *changes.Event) bool { … })
//
// The memory of a watcher is bounded, however far it is behind. Beyond the bound it marks
// more events as Coalesced than it must, or yields one again.
package changes
