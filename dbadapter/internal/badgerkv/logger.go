package badgerkv

import (
	"fmt"
	"log/slog"
	"strings"
)

// logger hands on what Badger says of failures in the background, which no call
// returns: a compaction or the writing of a table that failed. The rest is
// housekeeping, and is left out.
type logger struct {
	to    *slog.Logger
	steps *compactionSteps
}

func (l logger) Errorf(format string, args ...any)   { l.to.Error(message(format, args)) }
func (l logger) Warningf(format string, args ...any) { l.to.Warn(message(format, args)) }
func (l logger) Infof(format string, _ ...any)       { l.steps.logged(format) }
func (l logger) Debugf(string, ...any)               {}

func message(format string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
