package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrNoDaemon means that no daemon serves the state directory.
var ErrNoDaemon = errors.New("no daemon is running for this state directory")

// ErrForeignDaemon means that the socket is served by another user.
var ErrForeignDaemon = errors.New("the socket of this state directory is served by another user")

// Call asks the daemon of stateDir and puts its answer into result, which may be nil.
// It writes nothing to disk. The error is ErrNoDaemon when there is none, an *Error
// when the daemon answered with one, ctx.Err() when ctx ended first.
func Call(ctx context.Context, stateDir, method string, params, result any) error {
	return callAs(ctx, os.Getuid(), stateDir, method, params, result)
}

func callAs(ctx context.Context, uid int, stateDir, method string, params, result any) error {
	path, err := socketPath(stateDir)
	if err != nil {
		return err
	}
	if len(path) > maxSocketPath {
		return fmt.Errorf("%s: %w", stateDir, ErrNoDaemon) // a daemon would have left a pointer
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("%s: %w", stateDir, ErrNoDaemon)
		}
		return fmt.Errorf("call the daemon: %w", err)
	}
	conn := c.(*net.UnixConn)
	defer conn.Close()
	if peer, known, err := peerUID(conn); err != nil {
		return fmt.Errorf("call the daemon: %w", err)
	} else if known && peer != uid {
		return fmt.Errorf("%s: %w", path, ErrForeignDaemon)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	resp, err := exchange(ctx, conn, method, params)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("call the daemon: %s: %w", method, err)
	case resp.Error != nil:
		return resp.Error
	case resp.Version != Version:
		return &Error{Code: CodeVersion, Message: fmt.Sprintf("the running daemon speaks protocol %d, this command %d; restart the daemon", resp.Version, Version)}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(resp.Result, result); err != nil {
		return fmt.Errorf("call the daemon: %s: the answer is not what this command expects; restart the daemon: %w", method, err)
	}
	return nil
}

func exchange(ctx context.Context, conn *net.UnixConn, method string, params any) (response, error) {
	req := request{Version: Version, Method: method}
	if params != nil {
		body, err := json.Marshal(params)
		if err != nil {
			return response{}, err
		}
		req.Params = body
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.TimeoutMS = max(1, time.Until(deadline).Milliseconds())
	}
	if err := writeMessage(conn, req, MaxRequestBytes); err != nil {
		return response{}, err
	}
	var resp response
	err := readMessage(conn, &resp, MaxResponseBytes)
	return resp, err
}
