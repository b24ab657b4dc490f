package api

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/dbadapter"
)

// Key is a key in JSON: as text, or as base64 where it is not UTF-8.
type Key struct {
	Key   *string `json:"key,omitempty" doc:"the key, if it is UTF-8"`
	Key64 []byte  `json:"key64,omitempty" doc:"the key, if it is not"`
}

// KeyOf is the JSON form of a key.
func KeyOf(b []byte) Key {
	if s := string(b); utf8.ValidString(s) {
		return Key{Key: &s}
	}
	return Key{Key64: b}
}

// Bytes are the key's bytes.
func (k Key) Bytes() []byte {
	if k.Key != nil {
		return []byte(*k.Key)
	}
	return k.Key64
}

// KeyInfo is one key of a list.
type KeyInfo struct {
	Key
	Size    int       `json:"size" doc:"of the value, in bytes"`
	Version string    `json:"version"`
	Time    time.Time `json:"time" doc:"of the version"`
	Expires time.Time `json:"expires,omitzero" doc:"when the record expires; absent if it does not"`
}

// KeyInfoOf describes a record with a value of a size.
func KeyInfoOf(r *dbadapter.Record, size int) KeyInfo {
	return KeyInfo{Key: KeyOf(r.Key), Size: size, Version: r.Version.String(), Time: r.Version.Clock.Time(), Expires: ExpiryOf(r)}
}

// ExpiryOf is when a record expires; the zero time if it does not.
func ExpiryOf(r *dbadapter.Record) time.Time {
	if r.Expires == 0 {
		return time.Time{}
	}
	return r.Expires.Time()
}

// KeyList is a page of keys, in the order of their bytes.
type KeyList struct {
	Keys   []KeyInfo `json:"keys"`
	Cursor string    `json:"cursor,omitempty" doc:"where the next page begins; absent on the last"`
}

// Version is the version that a write has made.
type Version struct {
	Version string `json:"version"`
}

// KeyPath is the escaped path of a key. A dot is escaped, too: a client or
// proxy that cleans paths would take "." and ".." for folders.
func KeyPath(ns string, key []byte) string {
	return NamespacePath(ns) + "/keys/" + strings.ReplaceAll(url.PathEscape(string(key)), ".", "%2E")
}

// Headers of a read that too few hosts have answered.
const (
	// AnswersHeader is how many hosts have answered, and of how many: 1/3.
	AnswersHeader = "Syncd-Answers"
	// DetailHeader is what the detail of a problem says, where the body is what was found.
	DetailHeader = "Syncd-Detail"
)

// NamespacePath is the escaped path of a namespace.
func NamespacePath(ns string) string { return "/v1/ns/" + url.PathEscape(ns) }

// ExportProblem begins the last line of an export that an error ends: the problem and a brace follow. No
// record's line begins so.
const ExportProblem = `{"problem":`
