package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// TestMachineNamesThatTheHubTakes: a name that the hub would refuse is not sent, since
// each commit carries it.
func TestMachineNamesThatTheHubTakes(t *testing.T) {
	token := ""
	for _, p := range secretscantest.Secrets() {
		if strings.HasPrefix(p.Secret, "ghp_") {
			token = p.Secret
			break
		}
	}
	s := secretscan.New(secretscan.Options{})
	for name, want := range map[string]string{
		"build3":                 "build3",
		"DESKTOP-7B21KQ9":        "DESKTOP-7B21KQ9",
		"ip-10-2-0-14.eu-west-1": "ip-10-2-0-14.eu-west-1",
		"李雷的电脑":                  "李雷的电脑",
		"":                       unknownMachine,
		token:                    unknownMachine,
		"runner-" + token:        unknownMachine,
		"a\x1b[2J":               unknownMachine,
		"a\nb":                   unknownMachine,
		"a\u202eb":               unknownMachine,
		"a\xffb":                 unknownMachine,
		strings.Repeat("m", 300): unknownMachine,
	} {
		if got := tellableMachine(s, func() (string, error) { return name, nil }); got != want {
			t.Errorf("%q is told as %q, want %q", name, got, want)
		}
	}
	if got := tellableMachine(s, func() (string, error) { return "x", errors.New("no name") }); got != unknownMachine {
		t.Errorf("no name is told as %q", got)
	}
}
