package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Handler answers one call. ctx ends when the caller hangs up or its time is over.
// The result is sent as JSON. An *Error reaches the caller as it is, any other error
// as CodeInternal with its text, so it must hold no content and no secret. Calls run
// concurrently.
type Handler func(ctx context.Context, method string, params json.RawMessage) (result any, err error)

// maxConnections bounds the calls at a time; the next ones wait.
const maxConnections = 64

// Server listens for calls. Serve answers them.
type Server struct {
	listener *net.UnixListener
	undo     func()
	uid      int
}

// Listen opens the socket of the locked state directory. From its return on callers
// can connect; they are answered once Serve runs.
func Listen(l *Lock) (*Server, error) {
	path, undo, err := prepareAddress(l.dir)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		undo()
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	// The directory keeps others out until this is done.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		undo()
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return &Server{listener: ln, undo: undo, uid: os.Getuid()}, nil
}

// Serve answers calls until ctx ends; then running calls are cancelled, Serve waits
// for them, removes the socket and returns nil.
func (s *Server) Serve(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer s.undo()
	defer wg.Wait()
	defer cancel()
	slots := make(chan struct{}, maxConnections)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			<-slots
			if ctx.Err() != nil {
				return nil
			}
			if !passing(err) {
				return fmt.Errorf("listen for commands: %w", err)
			}
			// Out of file descriptors, most likely; calls must not die of it.
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			s.answer(ctx, conn, h)
		})
	}
}

// Close ends a Server on which Serve was never called.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.undo()
	return err
}

// passing reports whether accepting may work again by itself.
func passing(err error) bool { return !errors.Is(err, net.ErrClosed) }

// answer handles one connection.
func (s *Server) answer(ctx context.Context, conn *net.UnixConn, h Handler) {
	defer conn.Close()
	if uid, known, err := peerUID(conn); err != nil || known && uid != s.uid {
		return // another user: not even an answer
	}
	// A daemon that ends must not wait for a caller who never sends or reads.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(headTimeout))
	var req request
	if err := readMessage(conn, &req, MaxRequestBytes); err != nil {
		if ctx.Err() == nil {
			s.reply(conn, response{Error: &Error{Code: CodeBadRequest, Message: "the request cannot be read"}})
		}
		return
	}
	if req.Version != Version {
		s.reply(conn, response{Error: &Error{Code: CodeVersion, Message: fmt.Sprintf("the running daemon speaks protocol %d, this command %d; restart the daemon", Version, req.Version)}})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if req.TimeoutMS > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, time.Duration(req.TimeoutMS)*time.Millisecond)
		defer done()
	}
	// A caller sends nothing more; the read ends when it hangs up.
	_ = conn.SetReadDeadline(time.Time{})
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		var b [1]byte
		_, _ = conn.Read(b[:])
		cancel()
	}()
	resp := call(ctx, h, req)
	s.reply(conn, resp)
	_ = conn.Close()
	<-hungUp
}

// call runs the handler and puts what it returns into a response.
func call(ctx context.Context, h Handler, req request) response {
	result, err := h(ctx, req.Method, req.Params)
	if err != nil {
		var e *Error
		switch {
		case errors.As(err, &e):
			return response{Error: &Error{Code: e.Code, Message: err.Error()}}
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
			return response{Error: &Error{Code: CodeDeadline, Message: "the daemon could not answer in time"}}
		}
		return response{Error: &Error{Code: CodeInternal, Message: err.Error()}}
	}
	body, err := json.Marshal(result)
	if err != nil {
		return response{Error: &Error{Code: CodeInternal, Message: "the answer cannot be written as JSON: " + err.Error()}}
	}
	return response{Result: body}
}

func (s *Server) reply(conn *net.UnixConn, resp response) {
	resp.Version = Version
	_ = conn.SetWriteDeadline(time.Now().Add(headTimeout))
	err := writeMessage(conn, resp, MaxResponseBytes)
	if errors.Is(err, errTooLarge) {
		// Finding out may have taken longer than a write may.
		_ = conn.SetWriteDeadline(time.Now().Add(headTimeout))
		_ = writeMessage(conn, response{Version: Version, Error: &Error{Code: CodeTooLarge, Message: "the answer is too large; narrow the question"}}, MaxResponseBytes)
	}
	// Any other failure: the caller is gone, there is nobody to tell.
}
