package check

import "strings"

// A watch of a namespace that is cut into shards follows each shard at one host, and goes on at another one
// with repeats. So it is judged by what a program knows in the end, and by the order of what one host tells.

// ofShards is what a watch of shards knows beside what it was told.
type ofShards struct {
	// base is the latest that any node held when a watch of what followed began; nil: it began with what was held.
	base   map[string]stamp
	cursor string
	logs   []string  // of each shard, that of which it was told last
	page   []holding // that were told since the cursor changed, with what was told before of their keys
	before []holding
	keys   []string
}

// shardsWatching is Watching.
func (h *History) shardsWatching(b *Watching) {
	id := watchOf{b.Node, b.Program}
	w := h.watches[id]
	if w == nil || b.Now || b.Cursor == fromStart {
		w = &watch{watchOf: id, prefix: b.Prefix, view: map[string]holding{}}
		h.watches[id] = w
	}
	if b.Now {
		w.base = map[string]stamp{}
		for _, held := range h.held {
			for key, s := range held {
				if was, ok := w.base[key]; !ok || s.beats(was) {
					w.base[key] = s
				}
			}
		}
	}
	// A page of which a part was told may have been another host's.
	if w.cursor = b.Cursor; len(w.page) > 0 {
		w.logs = nil
	}
	w.page, w.before, w.keys = nil, nil, nil
}

// shardsWatched is Watched.
func (h *History) shardsWatched(node int, program string, e *Event) {
	w := h.watches[watchOf{node, program}]
	if !e.At {
		what := holding{}
		if e.Record != nil {
			what = holding{h.given(e.Record), true}
		}
		if reserved(e.Key) {
			h.found.say(Body, node, e.Key, "its watch %q told of a reserved key", program)
		}
		if !strings.HasPrefix(e.Key, w.prefix) || e.Kind != kindOfEvent(what) {
			h.says(w.watchOf, e.Key, "tells %q of %s, and its prefix is %q", e.Kind, what, w.prefix)
		}
		w.page, w.before, w.keys = append(w.page, what), append(w.before, w.view[e.Key]), append(w.keys, e.Key)
		w.view[e.Key] = what
	}
	if e.Cursor == w.cursor {
		return
	}
	logs := strings.Split(e.Cursor, ",")[1:]
	for i := range logs {
		logs[i], _, _ = strings.Cut(logs[i], ".")
	}
	for i, key := range w.keys {
		home := h.shards.home(key)
		if was, what := w.before[i], w.page[i]; w.logs != nil && w.logs[home] == logs[home] && was.there && what.there && was.beats(what.stamp) {
			h.says(w.watchOf, key, "tells of %s after %s, by the log of one host", what, was)
		}
	}
	w.cursor, w.logs, w.page, w.before, w.keys = e.Cursor, logs, nil, nil, nil
}
