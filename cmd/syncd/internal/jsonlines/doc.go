// Package jsonlines is the text form of records that import reads and export
// writes: one JSON object a line.
//
//	{"key":"a","value":"one"}
//	{"key64":"/w==","value64":"AAE="}
//	{"key":"b","value":"two","time":"2024-03-01T12:00:00Z"}
//	{"key":"c","value":"three","expires":"2027-03-01T12:00:00Z"}
//
// Bytes that are not UTF-8 go as base64 (RFC 4648, section 4, with padding)
// in key64 and value64. A time (RFC 3339, with capital T and Z and without
// leap seconds) is the time of the record's version, cut to the millisecond; so is
// expires, the time from which on the record reads as absent.
// Exports with versions add "version" and "deleted".
//
// The reader is strict, since an import must not change what it is given: a
// field that is unknown or stands twice (a key and a key64 count as the same)
// is an error, and so are bytes that are not UTF-8 and escaped halves of
// surrogate pairs, which encoding/json would replace. Lines of white space
// are skipped, but counted.
//
// The writer is canonical: fields in the order above, no white space, only
// those characters escaped that JSON demands. Equal records are equal bytes.
package jsonlines
