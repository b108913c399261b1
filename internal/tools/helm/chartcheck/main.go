// Command chartcheck judges Kubernetes manifests without a cluster: every document is
// decoded strictly into the type that its API has, and what the objects say about each
// other has to be true. It is the offline half of the chart's tests; hack/apiserver.sh
// is the other one.
//
//	helm template memsvc deploy/helm/memsvc -f VALUES | chartcheck [-external KIND/NAME,...] -
//
// Exit code 0: nothing found, 1: findings, one a line, 2: called wrongly.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("chartcheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	external := flags.String("external", "", "objects that somebody else makes, as `KIND/NAME,...`")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(stderr, "chartcheck: name the files to check, or - for standard input")
		return 2
	}
	code := 0
	for _, name := range flags.Args() {
		text, err := read(name, stdin)
		if err != nil {
			fmt.Fprintln(stderr, "chartcheck:", err)
			return 2
		}
		objects, findings := decode(text)
		if len(findings) == 0 {
			findings = judge(objects, strings.Split(*external, ","))
		}
		for _, f := range findings {
			fmt.Fprintf(stdout, "%s: %s\n", name, f)
			code = 1
		}
		if len(findings) == 0 {
			fmt.Fprintf(stdout, "%s: %d objects, as their APIs want them\n", name, len(objects))
		}
	}
	return code
}

func read(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
