// Package extract makes memories of finished turns (SPEC 7): it reads what a
// conversation said since the last time, and writes down what was meant to be
// remembered. Without a model it takes what a person said in so many words; with one,
// the model works in a sandbox.
//
// What was injected by us, what a tool printed and what the client added is not what a
// person said, and never becomes a memory.
package extract
