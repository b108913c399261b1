package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// ErrShown is returned by Parse when the arguments asked for help and it was
// written to Options.Stdout: there is nothing left to do, and the exit code is 0.
var ErrShown = errors.New("config: help shown")

// UsageError is a mistake in arguments, environment or file: exit code 2.
type UsageError struct{ Err error }

// Error returns what is wrong and where.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// File is the type of the flag that names the settings file. Declare it in the
// grammar as `Config config.File`.
type File = kong.ConfigFlag

// VersionFlag is the type of the flag that prints Options.Version and ends like
// help. Declare it as `ShowVersion config.VersionFlag` with the tags `name:"version"`
// and CommandLineTag, beside a version command or without one.
type VersionFlag = kong.VersionFlag

// Options says what program is parsed for.
type Options struct {
	Program     string // as it is called, for help and errors
	Description string // one sentence for help
	Version     string // what VersionFlag prints
	EnvPrefix   string // of the environment variables, without the underscore: MEMSVC
	Stdout      io.Writer
	Stderr      io.Writer
	// Sections are top-level keys of the file that are no flags, each with a
	// pointer that its value is decoded into, strictly.
	Sections map[string]any
	// Vars are interpolated into the grammar's tags as ${name}.
	Vars map[string]string
	// Bind are values handed to the Run methods of the grammar.
	Bind []any
	// OtherVariables are names with the prefix that something else than a flag reads.
	OtherVariables []string
	// Warn, if set, is told of each variable with the prefix that is set and that nothing
	// reads, in one line without its value: most likely a slip. Those that Kubernetes
	// sets for a service of the program's name are none.
	Warn func(line string)
}

// Parse fills grammar, a pointer to a struct in kong's notation, from args (without
// the program's name), environment and file. Every mistake it can find is in the
// one *UsageError it returns; ErrShown says that help was shown instead. A flag that was
// given an empty text, by whatever of the three, is a mistake without EmptyTag.
func Parse(grammar any, opts Options, args []string) (ctx *kong.Context, err error) {
	// Help ends the program in kong; a panic of our own type brings it back here.
	type exit struct{ code int }
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			ctx, err = nil, ErrShown
		default:
			panic(r)
		}
	}()
	k, err := build(grammar, opts, func(code int) { panic(exit{code}) })
	if err != nil {
		return nil, err
	}
	if opts.Warn != nil {
		for _, line := range unread(k.Model, opts, os.Environ()) {
			opts.Warn(line)
		}
	}
	ctx, err = k.Parse(args)
	if err != nil {
		err = mistakes(k, args, err)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil {
			err = errors.Join(empties(parse.Context), err)
		}
		return nil, &UsageError{Err: err}
	}
	if err := empties(ctx); err != nil {
		return nil, &UsageError{Err: err}
	}
	return ctx, nil
}

// Model returns what grammar, a pointer to a struct, offers: its commands and flags with
// their variables and defaults. It is for documentation.
func Model(grammar any, opts Options) (*kong.Application, error) {
	k, err := build(grammar, opts, func(int) {})
	if err != nil {
		return nil, err
	}
	return k.Model, nil
}

func build(grammar any, opts Options, exit func(code int)) (*kong.Kong, error) {
	k, err := kong.New(grammar,
		kong.Name(opts.Program),
		kong.Description(opts.Description),
		kong.Writers(opts.Stdout, opts.Stderr),
		kong.Exit(exit),
		kong.DefaultEnvars(opts.EnvPrefix),
		kong.PostBuild(withoutEnvironment),
		kong.Vars{"version": opts.Version},
		kong.Vars(opts.Vars),
		kong.Bind(opts.Bind...),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Configuration(loader(opts.Sections)),
	)
	if err != nil {
		return nil, fmt.Errorf("config: grammar of %s: %w", opts.Program, err)
	}
	return k, nil
}

// fromEnvironment reports whether one of the flag's variables is set.
func fromEnvironment(flag *kong.Flag) bool {
	for _, name := range flag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return false
}
