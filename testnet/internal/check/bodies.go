package check

import (
	"crypto/sha256"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Placement writer, once more: what a record says of its value, and which keys are no user's.

// A pointer is 1, the shard, the salt, size, time and SHA-256 of the value. A value in the record follows a 0.
const (
	pointerLen = 1 + 2 + 16 + 4 + 8 + 32
	bodyKeyLen = 2 + 2 + 16 // before the key of the record
)

// saltOf is the salt of the body that a record points to; empty for a record that has its value in itself.
func saltOf(b []byte) string {
	if len(b) != pointerLen || b[0] != 1 {
		return ""
	}
	return string(b[3:19])
}

// valueOf is the SHA-256 of what a user reads. Elsewhere than by placement writer values that look so are
// all read so, too, which tells them apart as well.
func valueOf(r *dbadapter.Record) [32]byte {
	b := r.Value
	switch {
	case reserved(string(r.Key)): // a body is the value
	case saltOf(b) != "":
		return [32]byte(b[pointerLen-32:])
	case len(b) > 0 && b[0] == 0:
		b = b[1:]
	}
	return sha256.Sum256(b)
}

// reserved reports whether a key is that of a body or a hint.
func reserved(key string) bool { return len(key) > 0 && key[0] == 0 }

// bodyOf is the key whose value a body is, and its salt; false for what is no body.
func bodyOf(key string) (of string, salt string, ok bool) {
	if len(key) <= bodyKeyLen || key[:2] != "\x00b" {
		return "", "", false
	}
	return key[bodyKeyLen:], key[4:bodyKeyLen], true
}

// ByWriter notes that large values stay with their writers: what users are given is no more the bytes of records.
func (h *History) ByWriter() { h.shards.writer = true }

// given is what a user was given.
func (h *History) given(r *dbadapter.Record) stamp {
	s := stampOf(r)
	if h.shards.writer {
		s.value, s.content = sha256.Sum256(r.Value), [32]byte{}
		if s.expires() && len(r.Value) == 0 { // once it has expired its body is not read
			s.value = [32]byte{}
		}
	}
	return s
}

// sighted reports whether some node has held what a user was given.
func (h *History) sighted(key string, s stamp) bool {
	if _, seen := h.seen[sighting{key, s}]; seen || !h.shards.writer {
		return seen
	}
	for one := range h.seen {
		if one.key == key && one.version == s.version && one.alike(s) {
			return true
		}
	}
	return false
}

// Stays notes that the value of a write is to stay with its writer: the record will have a pointer. durably:
// a majority is to hold it.
func (h *History) Stays(o Op, durably bool) {
	h.ops[o].content, h.ops[o].durably = [32]byte{}, durably
}

// LostValue judges that a read has found that no host has the value of a record. It must be there if a majority was to
// have each value that the read can have found, and neither the key's shard nor the value's has lost a majority since.
func (h *History) LostValue(r *Request) {
	if !slices.ContainsFunc(h.ops, func(o op) bool {
		return o.key == r.Key && o.state != refused && o.content == [32]byte{} && !h.overtaken(r, &o) && (!o.durably || !h.unvoided(&o))
	}) {
		h.found.say(Body, r.Node, r.Key, "a read says that the value is lost, and no shard has lost a majority")
	}
}

// overtaken reports whether a read cannot have found what a write had.
func (h *History) overtaken(r *Request, o *op) bool {
	return h.judged(r) && len(o.made) > 0 && !slices.ContainsFunc(o.made, func(v dbadapter.Version) bool { return !r.must.beats(stamp{version: v}) })
}

// unvoided reports whether the shards of a write's key and value have had their majorities since.
func (h *History) unvoided(o *op) bool {
	of := map[int]bool{h.shards.home(o.key): true}
	for s := range h.seen {
		if key, _, is := bodyOf(s.key); is && key == o.key && s.value == o.value {
			of[h.shards.home(s.key)] = true
		}
	}
	for number := range of {
		if s := h.shards.at(number); s.voids != o.voids[number] || s.apart {
			return false
		}
	}
	return true
}

// intendedBody looks for the request behind a body.
func (h *History) intendedBody(s sighting) {
	of, _, is := bodyOf(s.key)
	if is && !s.deleted && !slices.ContainsFunc(h.ops, func(o op) bool { return o.key == of && o.value == s.value }) {
		h.found.say(Body, h.seen[s], s.key, "no application asked for this value of %q", of)
	}
}

// bodies judges the bodies that are left: some record, or some entry of a kept log, names each.
func (h *History) bodies(finals []Final) {
	named := Named{}
	for i := range finals {
		named.Add(finals[i].Dump)
		for j := range finals[i].Log {
			r := &finals[i].Log[j].Record
			if named.Add([]dbadapter.Record{*r}); reserved(string(r.Key)) {
				h.found.say(Body, finals[i].Node, string(r.Key), "its kept log lists a reserved key")
			}
		}
	}
	for i := range finals {
		for _, key := range named.Unnamed(finals[i].Dump) {
			if finals[i].Stated {
				h.found.say(Body, finals[i].Node, key, "it holds a body still that no record and no kept entry names")
			}
		}
	}
}

// Named are the bodies that records name, by their salts.
type Named map[string]bool

// Add notes what records name.
func (n Named) Add(records []dbadapter.Record) {
	for i := range records {
		if salt := saltOf(records[i].Value); salt != "" && !reserved(string(records[i].Key)) {
			n[salt] = true
		}
	}
}

// Unnamed are the keys of the bodies among records that nothing names.
func (n Named) Unnamed(records []dbadapter.Record) (keys []string) {
	for i := range records {
		if _, salt, is := bodyOf(string(records[i].Key)); is && !records[i].Deleted && !n[salt] {
			keys = append(keys, string(records[i].Key))
		}
	}
	return keys
}

// Bodiless are the keys among records whose values are bodies that none of all has.
func Bodiless(records, all []dbadapter.Record) map[string]bool {
	there, none := map[string]bool{}, map[string]bool{}
	for i := range all {
		if _, salt, is := bodyOf(string(all[i].Key)); is && !all[i].Deleted {
			there[salt] = true
		}
	}
	for i := range records {
		if salt := saltOf(records[i].Value); salt != "" && !there[salt] {
			none[string(records[i].Key)] = true
		}
	}
	return none
}
