package config

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// SecretTag marks a flag whose value is a secret: `secret:""` in the grammar.
// Show prints that it is set, never what it is.
const SecretTag = "secret"

// Show writes the settings of the chosen command as a file that Parse would read,
// one a line, secrets masked, decisions of the command line left out.
func Show(w io.Writer, ctx *kong.Context) error {
	for _, flag := range ctx.Flags() {
		if flag.Name == "help" || flag.Name == "config" || onlyCommandLine(flag) {
			continue
		}
		value := fmt.Sprint(ctx.FlagValue(flag))
		if flag.Tag.Has(SecretTag) && value != "" {
			value = "(set)"
		}
		if _, err := fmt.Fprintf(w, "%s: %q\n", flag.Name, value); err != nil {
			return err
		}
	}
	return nil
}
