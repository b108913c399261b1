// Package reconcile decides what a machine and the hub have to do to agree: the
// three-way plan over baseline, local and remote tree, and the merges of texts that
// both sides changed. Everything here is a pure function of its arguments, so that
// the laws of the plan can be tested by the thousand.
package reconcile
