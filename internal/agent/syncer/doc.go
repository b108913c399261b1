// Package syncer keeps one workspace in step with one project of a hub. One cycle
// is scan, pull, plan, guard, apply, push, advance the baseline; it may stop between
// any two steps and, run again, ends in the same state.
//
// The package decides and orders; it touches no disk, network or clock itself.
// What it needs of them it declares as ports (Local, State, Remote, Guard, Clock).
// The ports' doc comments are the contract their adapters are tested against.
package syncer
