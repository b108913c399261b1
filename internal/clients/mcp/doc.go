// Package mcp serves the memories of a project to coding clients over the Model Context
// Protocol: the same store, recall and conflicts as commands and hooks, for clients
// without hooks and for what a client does on its own account.
//
// A tool's trouble is an answer the model can read, never the end of the server. What a
// memory holds comes back as data, in fields of its own.
package mcp
