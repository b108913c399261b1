package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogOptions says how a program logs.
type LogOptions struct {
	Format string // "text" (the default when empty) or "json"
	Level  string // "debug", "info" (the default when empty), "warn" or "error"
}

// NewLogger returns a logger that writes a line a record to w. An unknown format or
// level is an error that lists the known ones.
//
// As a last line of defence, the value of an attribute whose key names a credential
// (token, authorization, password, secret, cookie) is replaced. This does not make
// it right to log one.
func NewLogger(w io.Writer, o LogOptions) (*slog.Logger, error) {
	var level slog.Level
	switch strings.ToLower(o.Level) {
	case "debug":
		level = slog.LevelDebug
	case "", "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", o.Level)
	}
	handler := &slog.HandlerOptions{Level: level, ReplaceAttr: hideCredentials}
	switch strings.ToLower(o.Format) {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, handler)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, handler)), nil
	}
	return nil, fmt.Errorf("log format %q: use text or json", o.Format)
}

// hidden replaces the value of an attribute that names a credential.
const hidden = "[hidden]"

func hideCredentials(_ []string, a slog.Attr) slog.Attr {
	switch strings.ToLower(a.Key) {
	case "token", "authorization", "password", "secret", "cookie":
		return slog.String(a.Key, hidden)
	}
	return a
}
