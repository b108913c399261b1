// Package sandbox lets a language model work on a project's memories with tools of ours
// that run in this process and can do little: read, list, search below the project, in
// one transcript and in the memories; write and edit memories, and delete them if the
// caller allows that. There is no shell, no network and no further agent. What the model
// reads may be hostile and so may be what it asks for: the tools, not the model, keep
// every promise here.
package sandbox
