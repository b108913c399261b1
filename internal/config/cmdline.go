package config

import "github.com/alecthomas/kong"

// CommandLineTag marks a flag that neither environment nor file may set:
// `cmdline:""` in the grammar. It is for decisions of the moment ("really", "all",
// "replace"), which a forgotten setting must not make, and for flags that are a
// command of their own, such as --version.
const CommandLineTag = "cmdline"

func onlyCommandLine(flag *kong.Flag) bool { return flag.Tag.Has(CommandLineTag) }

// withoutEnvironment takes the variables of such flags away.
func withoutEnvironment(k *kong.Kong) error {
	for _, flag := range allFlags(k.Model.Node) {
		if onlyCommandLine(flag) {
			flag.Envs, flag.Tag.Envs = nil, nil
		}
	}
	return nil
}

// allFlags returns the flags of a node and of everything below it.
func allFlags(n *kong.Node) []*kong.Flag {
	flags := append([]*kong.Flag(nil), n.Flags...)
	for _, child := range n.Children {
		flags = append(flags, allFlags(child)...)
	}
	return flags
}
