package check

import "github.com/syncd-io/syncd/dbadapter"

// expiring is a record that expires so many milliseconds after the epoch.
func expiring(clock int, expires dbadapter.Timestamp) dbadapter.Record {
	r := put("k", "v", at(clock))
	r.Expires = dbadapter.TimestampAt(dbadapter.Epoch) + expires<<16
	return r
}

// expiryCases are histories of records that expire, and of what records replace.
func expiryCases() []ruleCase {
	return []ruleCase{
		{"identity: two expiries", "identity", func(h *History) []Final {
			a, b := expiring(5, 1), expiring(5, 2)
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			h.Observe(0, &a)
			h.Restored(0)
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			h.Observe(0, &b)
			return []Final{final(0, 0, b)}
		}},
		{"identity: two lists of what it replaces", "identity", func(h *History) []Final {
			a, b := put("k", "v", at(5)), put("k", "v", at(5))
			a.Replaces = []dbadapter.Replaced{{Writer: 9, Clock: 1}}
			h.written(0, b)
			h.Observe(0, &b)
			h.Restored(0)
			h.Observe(0, &a)
			return []Final{final(0, 0, a)}
		}},
		{"equal: an expiry", "equal", func(h *History) []Final {
			a, b := expiring(5, 1), expiring(5, 2)
			a.Version.Writer, b.Version.Writer = 0, 0
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			h.Expiring(h.Intend(1, "k", false, []byte("v")))
			return []Final{final(0, 0, a), final(1, 0, b)}
		}},
		{"backwards: an earlier expiry of one date", "backwards", func(h *History) []Final {
			a, b := expiring(5, 1), expiring(5, 2)
			a.Version, b.Version = dbadapter.Version{Clock: 5}, dbadapter.Version{Clock: 5}
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			h.Observe(0, &b)
			h.Observe(0, &a)
			return []Final{final(0, 0, b)}
		}},

		{"a record that expires as asked", "", func(h *History) []Final {
			r := expiring(5, 1)
			op := h.Intend(0, "k", false, []byte("v"))
			h.Expiring(op)
			h.Acknowledge(op, r.Version)
			h.Expiring(h.Intend(0, "l", false, []byte("v")))
			l := r
			l.Key, l.Version = []byte("l"), at(6)
			return []Final{final(0, 0, r, l)}
		}},
		{"intended: an expiry that was not asked for", "intended", func(h *History) []Final {
			r := expiring(5, 1)
			h.Acknowledge(h.Intend(0, "k", false, []byte("v")), r.Version)
			return []Final{final(0, 0, r)}
		}},
		{"intended: an expiry that was lost", "intended", func(h *History) []Final {
			op := h.Intend(0, "k", false, []byte("v"))
			h.Expiring(op)
			h.Acknowledge(op, at(5))
			return []Final{final(0, 0, put("k", "v", at(5)))}
		}},
		{"intended: an unknown outcome with another expiry", "intended", func(h *History) []Final {
			h.Expiring(h.Intend(0, "k", false, []byte("v")))
			return []Final{final(0, 0, put("k", "v", at(5)))}
		}},
	}
}
