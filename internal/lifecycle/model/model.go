// Package model is the port to language models: one call that takes a conversation and
// tools, and answers with text and calls of tools. Everything that uses it has a path
// without a model; nothing waits for one without a bound.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Model is a language model. Implementations are safe for concurrent use.
type Model interface {
	// Complete answers a request. It ends with ctx. Trouble that another try may cure is
	// ErrBusy; what no try cures, a refused key or an unknown model, is ErrDenied. Errors
	// hold neither the key nor any part of the conversation.
	Complete(ctx context.Context, req Request) (Response, error)
}

// ErrBusy is a provider that is overloaded, out of quota for now, or not to be reached.
// BusyError may say when to come back.
var ErrBusy = errors.New("the model cannot answer now")

// ErrDenied is a provider that will not answer however often it is asked.
var ErrDenied = errors.New("the model refuses to answer; look at its key, name and endpoint")

// ErrMalformed is an answer that does not have the form of the provider's protocol.
var ErrMalformed = errors.New("the model's answer does not have the form of its protocol; look at its endpoint")

// ErrNoTools is what a model that knows no tools answers to a Request with some.
var ErrNoTools = errors.New("this model cannot use tools")

// ErrSpent is a model that may not be asked any more today. It is an ErrBusy too.
var ErrSpent = fmt.Errorf("today's tokens are used up: %w", ErrBusy)

// BusyError is an ErrBusy with a time to wait; 0 = not said.
type BusyError struct{ RetryAfter time.Duration }

// Error is ErrBusy's text; the provider's may hold anything.
func (e *BusyError) Error() string { return ErrBusy.Error() }

// Is makes it an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Role says who speaks.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is what one side said.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is one of a text, a call of a tool, or a tool's answer.
type Part struct {
	Text   string
	Call   *ToolCall
	Result *ToolResult
}

// ToolCall is a model asking for a tool.
type ToolCall struct {
	ID    string
	Name  string
	Input json.RawMessage // a JSON object, as the model wrote it
}

// ToolResult answers a call.
type ToolResult struct {
	ID    string // of the call
	Text  string
	Error bool
}

// Tool is a tool that a model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the input, an object
}

// Request is a conversation that wants an answer.
type Request struct {
	// System is the part that is the same from call to call, so that providers may
	// keep it in a cache.
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int // of the answer; 0 = the adapter's default
}

// StopReason says why a model stopped.
type StopReason string

// The reasons to stop.
const (
	StopEnd    StopReason = "end"    // it said all it wanted
	StopTools  StopReason = "tools"  // it waits for its tools
	StopLength StopReason = "length" // MaxTokens cut it off
)

// Usage counts tokens as the provider bills them.
type Usage struct {
	Input  int
	Output int
	Cached int // of Input, those that came from a cache
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.Cached + v.Cached}
}

// Response is a model's answer.
type Response struct {
	Parts []Part // texts and calls, in order
	Stop  StopReason
	Usage Usage
}

// Text returns the texts of the answer, joined.
func (r Response) Text() string {
	var s string
	for _, p := range r.Parts {
		s += p.Text
	}
	return s
}

// Calls returns the calls of the answer.
func (r Response) Calls() []ToolCall {
	var calls []ToolCall
	for _, p := range r.Parts {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// Say is a message of one text.
func Say(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}
