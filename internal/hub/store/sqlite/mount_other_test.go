//go:build !linux

package sqlite

import "errors"

func mount(string, string) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
