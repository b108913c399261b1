// Package config is the one loader of settings, for both programs. A program
// declares its commands and flags as a struct (the grammar); Parse fills it from,
// in rising order of authority, the defaults in the grammar, a YAML file, the
// environment and the command line.
//
// The file is strict: a key that is no flag of the program is an error with its
// line, so that a misspelt setting is never silently a default. Every flag has an
// environment variable, PREFIX_ plus its name, except flags with CommandLineTag: what
// they decide, only the command line can.
package config
