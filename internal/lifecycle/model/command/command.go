// Package command is the language model port over a program: the prompt goes to its
// standard input, the answer comes from its standard output.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// HooksOff is the environment variable, set to 1, by which our own hooks know that the
// client they run in was started by us: they stay silent, so that asking a client never
// leads to asking it again.
const HooksOff = "MEMSYNC_HOOKS_OFF"

const (
	maxAnswer = 4 << 20         // bytes
	lastWords = 2 * time.Second // that output may take after the program is killed
)

// Model runs one program. It is safe for concurrent use, and knows no tools.
type Model struct{ args []string }

// New returns the model that the program args[0] with its arguments is. No shell is
// between.
func New(args []string) *Model { return &Model{args: append([]string(nil), args...)} }

// Complete runs the program; see model.Model. It ends, with all that it started, when
// ctx does. Tokens are estimated from bytes, since nobody tells them.
func (m *Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	if len(req.Tools) > 0 {
		return model.Response{}, fmt.Errorf("command: %w", model.ErrNoTools)
	}
	prompt := promptOf(req)
	cmd := exec.CommandContext(ctx, m.args[0], m.args[1:]...) //nolint:gosec // the person's own setting
	cmd.Dir = os.TempDir()                                    // no project's instructions or hooks
	cmd.Env = append(os.Environ(), HooksOff+"=1")
	cmd.Stdin = strings.NewReader(prompt)
	out := &limited{left: maxAnswer}
	cmd.Stdout = out // and standard error goes nowhere: it may hold anything
	cmd.WaitDelay = lastWords
	group(cmd)
	err := cmd.Run()
	usage := model.Usage{Input: tokens(len(prompt)), Output: tokens(out.b.Len())}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return model.Response{Usage: usage}, ctx.Err()
	case out.left < 0:
		return model.Response{Usage: usage}, fmt.Errorf("command: more than %d bytes: %w", maxAnswer, model.ErrMalformed)
	case errors.As(err, &exit):
		return model.Response{Usage: usage}, fmt.Errorf("command: exit code %d: %w", exit.ExitCode(), &model.BusyError{})
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return model.Response{}, fmt.Errorf("command: it cannot be run: %w", model.ErrDenied)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(out.b.String(), "?"))
	if text == "" {
		return model.Response{Usage: usage}, fmt.Errorf("command: no answer: %w", model.ErrMalformed)
	}
	return model.Response{Parts: []model.Part{{Text: text}}, Stop: model.StopEnd, Usage: usage}, nil
}

// promptOf writes a conversation as one text; one question stands alone.
func promptOf(req model.Request) string {
	var b strings.Builder
	if req.System != "" {
		b.WriteString(req.System + "\n\n")
	}
	for _, msg := range req.Messages {
		if len(req.Messages) > 1 {
			b.WriteString(map[model.Role]string{model.RoleUser: "User:\n", model.RoleAssistant: "Assistant:\n"}[msg.Role])
		}
		for _, p := range msg.Parts {
			b.WriteString(p.Text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// tokens estimates: four bytes are about a token in English, less in most others.
func tokens(n int) int { return (n + 3) / 4 }

// limited keeps the first bytes and fails the writer after them.
type limited struct {
	b    bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too much output")
	}
	return l.b.Write(p)
}
