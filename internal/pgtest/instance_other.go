//go:build !unix

package pgtest

import (
	"errors"
	"time"
)

// instance cannot be had here.
type instance struct {
	bin, dir string
	port     int
}

func newInstance(string, []string) (*instance, error) {
	return nil, errors.New("a server of its own needs a unix; name one with " + Variable)
}

func (*instance) start() error                   { return nil }
func (*instance) answers(string, time.Time) bool { return false }
func (*instance) stop() error                    { return nil }
func (*instance) kill()                          {}
func (*instance) pause()                         {}
func (*instance) resume()                        {}
func (*instance) end()                           {}
func (*instance) lastLines(int) string           { return "" }
