package badgerdb

import (
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// logger gives Badger's messages to zap, one level below their own: what
// Badger finds worth telling is mostly its housekeeping.
type logger struct{ to *zap.SugaredLogger }

func (l logger) Errorf(format string, args ...any)   { l.to.Errorf(trim(format), args...) }
func (l logger) Warningf(format string, args ...any) { l.to.Infof(trim(format), args...) }
func (l logger) Infof(format string, args ...any)    { l.to.Debugf(trim(format), args...) }
func (l logger) Debugf(string, ...any)               {}

func trim(format string) string { return strings.TrimRight(format, "\n") }

// quote shows a key in an error: at most 64 bytes of it.
func quote(key []byte) string {
	const most = 64
	if len(key) <= most {
		return strconv.Quote(string(key))
	}
	return strconv.Quote(string(key[:most])) + "…"
}
