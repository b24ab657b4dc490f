package cli

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// verboseLog is the log of commands that are no daemon: with --verbose only.
func (a *app) verboseLog() *slog.Logger {
	if !a.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(logHandler(a.logCore()))
}

// logHandler adds no stack to an error: it would show where the line is written, and not
// what has failed.
func logHandler(core zapcore.Core, o ...zapslog.HandlerOption) slog.Handler {
	return zapslog.NewHandler(core, append(o, zapslog.AddStacktraceAt(slog.LevelError+1))...)
}

// logCore writes the log to standard error.
func (a *app) logCore() zapcore.Core {
	level := zapcore.InfoLevel
	switch {
	case a.Verbose:
		level = zapcore.DebugLevel
	case a.Quiet:
		level = zapcore.WarnLevel
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if a.LogFormat == "console" {
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	return zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(a.stderr)), level)
}
