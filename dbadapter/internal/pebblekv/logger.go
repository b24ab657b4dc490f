package pebblekv

import (
	"fmt"
	"log/slog"
	"strings"
)

// logger hands on what Pebble says of failures in the background, which no call
// returns. The rest is housekeeping, and is left out.
type logger struct{ to *slog.Logger }

func (l logger) Errorf(format string, args ...any) { l.to.Error(message(format, args)) }
func (l logger) Infof(string, ...any)              {}

// Fatalf must not return: Pebble cannot go on where its log or its list of tables
// cannot be written. In a commit the panic becomes its error; elsewhere it ends the
// process, and what was acknowledged is on the disk.
func (l logger) Fatalf(format string, args ...any) { panic(message(format, args)) }

func message(format string, args []any) string {
	return "pebble: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
