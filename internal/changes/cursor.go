package changes

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// Cursor says how far a watch is, as text that others need not understand:
//
//	""                  from now on
//	start               what is held first, then its changes
//	LOG.SEQ             behind the change SEQ of the log LOG
//	LOG.SEQ.KEY         in the midst of what is held, behind KEY; then behind SEQ
//
// LOG is a dbadapter.LogID, KEY is base64 in the URL-safe alphabet.
type Cursor string

// FromStart is the cursor of a watch that begins with what is held.
const FromStart Cursor = "start"

// ErrCursorExpired: the change log does not reach back to the cursor of a watch, or the
// cursor is of another log. The changes since are not known.
var ErrCursorExpired = errors.New("the cursor has expired")

// place is a cursor that was read.
type place struct {
	log dbadapter.LogID // 0: of the cursors that name no place
	seq uint64
	// listed, if not nil, is the last key of the listing; empty before the first.
	listed []byte
}

func (p place) cursor() Cursor {
	b := make([]byte, 0, 40)
	b = append(append(b, p.log.String()...), '.')
	b = strconv.AppendUint(b, p.seq, 10)
	if p.listed != nil {
		b = base64.RawURLEncoding.AppendEncode(append(b, '.'), p.listed)
	}
	return Cursor(b)
}

// MaxCursor is the length of the longest cursor.
const MaxCursor = 16 + 1 + 20 + 1 + (dbadapter.MaxKey*8+5)/6

// Listing reports whether the cursor is that of a watch which lists what is held.
func (c Cursor) Listing() bool {
	at, err := c.read()
	return err == nil && at.listed != nil
}

// Check says what is wrong with the cursor.
func (c Cursor) Check() error {
	_, err := c.read()
	return err
}

// Seq is the change that the cursor is behind; 0 where it names none.
func (c Cursor) Seq() uint64 {
	at, _ := c.read()
	return at.seq
}

// Log is the change log that the cursor names; 0 where it names none.
func (c Cursor) Log() dbadapter.LogID {
	at, _ := c.read()
	return at.log
}

// MadeBy reports whether a watch of a log has made the cursor. It is true of the cursors
// of now and of the start.
func (c Cursor) MadeBy(log dbadapter.LogID) bool {
	at, err := c.read()
	return err == nil && (at.log == 0 || at.log == log)
}

// read returns the place that a cursor names.
func (c Cursor) read() (p place, err error) {
	switch c {
	case "":
		return place{}, nil
	case FromStart:
		return place{listed: []byte{}}, nil
	}
	bad := fmt.Errorf("%.80q is no cursor of a watch: take that of an event, or %q", string(c), string(FromStart))
	parts := strings.Split(string(c[:min(len(c), MaxCursor+1)]), ".")
	if len(parts) != 2 && len(parts) != 3 {
		return place{}, bad
	}
	if p.log, err = dbadapter.ParseLogID(parts[0]); err != nil {
		return place{}, bad
	}
	if p.seq, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return place{}, bad
	}
	if len(parts) == 3 {
		if p.listed, err = base64.RawURLEncoding.Strict().DecodeString(parts[2]); err != nil || len(p.listed) == 0 {
			return place{}, bad
		}
	}
	if p.cursor() != c { // there is one form
		return place{}, bad
	}
	return p, nil
}
