package agent

import (
	"os"
	"strings"
	"unicode"

	"github.com/memsvc/memsvc/internal/secretscan"
)

const (
	// unknownMachine stands for a machine whose name cannot be told.
	unknownMachine = "unknown"
	// maxMachine is the longest name of a machine that the contract has room for, in bytes.
	maxMachine = 256
)

// machineName is this machine's name as commits carry it.
func machineName(scanner *secretscan.Scanner) string { return tellableMachine(scanner, os.Hostname) }

// tellableMachine returns what hostname says, or unknownMachine where the hub would
// refuse it, and every commit with it: no name, one too long, characters that no label
// holds, or one that the guard takes for a secret, as some images give machines the
// password of their first login for a name.
func tellableMachine(scanner *secretscan.Scanner, hostname func() (string, error)) string {
	name, err := hostname()
	if err != nil || name == "" || len(name) > maxMachine {
		return unknownMachine
	}
	odd := func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
	}
	if strings.IndexFunc(name, odd) >= 0 {
		return unknownMachine
	}
	if found, err := scanner.Scan("", []byte(name)); err != nil || len(found) > 0 {
		return unknownMachine
	}
	return name
}
