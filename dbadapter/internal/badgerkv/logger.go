package badgerkv

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// logger hands on what Badger says of failures in the background, which no call
// returns: a compaction or the writing of a table that failed. The rest is
// housekeeping, and is left out.
type logger struct {
	to *slog.Logger
	db *db
}

func (l logger) Errorf(format string, args ...any)   { l.say(slog.LevelError, format, args) }
func (l logger) Warningf(format string, args ...any) { l.say(slog.LevelWarn, format, args) }
func (l logger) Infof(format string, _ ...any)       { l.db.steps.logged(format) }
func (l logger) Debugf(format string, _ ...any)      { l.db.makesTable(format) }

func (l logger) say(level slog.Level, format string, args []any) {
	if strings.HasPrefix(format, mergeState) {
		return
	}
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	l.to.Log(context.Background(), level, "badger: "+text)
	l.db.logged(format, text)
}
