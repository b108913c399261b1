package control

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

type echo struct {
	Text string `json:"text"`
}

// serve runs h for stateDir until the test ends.
func serve(t *testing.T, stateDir string, h Handler, change ...func(*Server)) {
	t.Helper()
	l, err := Acquire(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
}

func echoHandler(_ context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "echo":
		var e echo
		if err := json.Unmarshal(params, &e); err != nil {
			return nil, &Error{Code: CodeBadRequest, Message: "echo: want {text}"}
		}
		return e, nil
	case "fail":
		return nil, fmt.Errorf("link x: %w", &Error{Code: "HALTED", Message: "halted"})
	case "break":
		return nil, errors.New("disk on fire")
	case "huge":
		return echo{strings.Repeat("x", MaxResponseBytes)}, nil
	}
	return nil, UnknownMethod(method)
}

// shortTemp is a directory whose path leaves room for a socket.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestCall(t *testing.T) {
	dir := shortTemp(t)
	serve(t, dir, echoHandler)
	ctx := t.Context()

	var got echo
	if err := Call(ctx, dir, "echo", echo{"你好"}, &got); err != nil || got.Text != "你好" {
		t.Fatalf("echo: %v, %v", got, err)
	}
	if err := Call(ctx, dir, "echo", echo{"x"}, nil); err != nil {
		t.Fatalf("a call without a wish for the result: %v", err)
	}
	for method, want := range map[string]Code{"fail": "HALTED", "break": CodeInternal, "huge": CodeTooLarge, "nothing": CodeUnknownMethod} {
		var e *Error
		if err := Call(ctx, dir, method, nil, nil); !errors.As(err, &e) || e.Code != want {
			t.Errorf("%s: %v, want code %s", method, err, want)
		}
	}
	if err := Call(ctx, dir, "echo", 7, nil); !errors.Is(err, &Error{Code: CodeBadRequest}) {
		t.Errorf("bad parameters: %v", err)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	dir := shortTemp(t)
	serve(t, dir, echoHandler)
	var wg sync.WaitGroup
	for i := range 300 { // more than are answered at a time
		wg.Go(func() {
			var got echo
			want := fmt.Sprint(i)
			if err := Call(t.Context(), dir, "echo", echo{want}, &got); err != nil || got.Text != want {
				t.Errorf("call %d: %v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(shortTemp(t), "state")
	serve(t, dir, echoHandler)
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, socketName): 0o600, filepath.Join(dir, lockName): 0o600} {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, fi.Mode().Perm(), want)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	dir := shortTemp(t)
	if err := Call(t.Context(), dir, "echo", nil, nil); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("nothing there: %v", err)
	}
	if err := Call(t.Context(), filepath.Join(dir, "absent"), "echo", nil, nil); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("no state directory: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("calling made %v", entries)
	}
	// A killed daemon leaves its socket behind.
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	if err := Call(t.Context(), dir, "echo", nil, nil); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("stale socket: %v", err)
	}
	serve(t, dir, echoHandler)
	if err := Call(t.Context(), dir, "echo", echo{}, nil); err != nil {
		t.Errorf("after the stale socket was replaced: %v", err)
	}
}

func TestLongStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	var used string
	t.Run("serve", func(t *testing.T) {
		serve(t, dir, echoHandler)
		path, err := socketPath(dir)
		if err != nil || len(path) > maxSocketPath {
			t.Fatalf("socket at %q, %v", path, err)
		}
		used = path
		fi, err := os.Stat(filepath.Dir(path))
		if err != nil || fi.Mode().Perm() != 0o700 {
			t.Fatalf("the socket's directory: %v, %v", fi, err)
		}
		if err := Call(t.Context(), dir, "echo", echo{}, nil); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(filepath.Dir(used)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", filepath.Dir(used), err)
	}
	if err := Call(t.Context(), dir, "echo", nil, nil); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("after the end: %v", err)
	}
}

// Another user is refused at both ends, whatever the permissions of the files.
func TestOtherUserIsRefused(t *testing.T) {
	if _, known, err := ownPeer(t); err != nil || !known {
		t.Skipf("this system does not tell who is at the other end of a socket: %v", err)
	}
	dir := shortTemp(t)
	serve(t, dir, echoHandler)
	if err := callAs(t.Context(), os.Getuid()+1, dir, "echo", echo{}, nil); !errors.Is(err, ErrForeignDaemon) {
		t.Errorf("a daemon of another user: %v", err)
	}
	dir = shortTemp(t)
	serve(t, dir, echoHandler, func(s *Server) { s.uid++ })
	err := Call(t.Context(), dir, "echo", echo{"x"}, nil)
	var e *Error
	if err == nil || errors.As(err, &e) {
		t.Errorf("a caller of another user got an answer: %v", err)
	}
}

func ownPeer(t *testing.T) (int, bool, error) {
	t.Helper()
	path := filepath.Join(shortTemp(t), "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.DialUnix("unix", nil, ln.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return peerUID(c)
}

// untilDone serves a handler that ends with its context, and tells of both.
func untilDone(t *testing.T) (dir string, started chan struct{}, ended chan error) {
	dir, started, ended = shortTemp(t), make(chan struct{}, 100), make(chan error, 100)
	serve(t, dir, func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	return dir, started, ended
}

func TestDeadlineCancelsTheHandler(t *testing.T) {
	dir, started, ended := untilDone(t)
	// Time may be up before the handler has begun; then it gets more.
	for within := 20 * time.Millisecond; len(started) == 0; within *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		err := Call(ctx, dir, "wait", nil, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, &Error{Code: CodeDeadline}) {
			t.Fatalf("deadline: %v", err)
		}
	}
	<-ended
}

func TestHangUpCancelsTheHandler(t *testing.T) {
	dir, started, ended := untilDone(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-started; cancel() }()
	if err := Call(ctx, dir, "wait", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler saw %v", err)
	}
}

func TestServeEndsRunningCalls(t *testing.T) {
	dir := shortTemp(t)
	l, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	s, err := Listen(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Serve(ctx, func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}()
	called := make(chan error, 1)
	go func() { called <- Call(context.Background(), dir, "wait", nil, nil) }()
	idle, err := net.Dial("unix", filepath.Join(dir, socketName)) // connects and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	<-started
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := <-called; err == nil {
		t.Error("the call succeeded though the daemon ended")
	}
	if err := Call(context.Background(), dir, "wait", nil, nil); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("after the end: %v", err)
	}
}

func TestGarbage(t *testing.T) {
	dir := shortTemp(t)
	serve(t, dir, echoHandler)
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	for _, junk := range [][]byte{{}, {1}, huge, append(binary.BigEndian.AppendUint32(nil, 5), "{bad}"...), bytes.Repeat([]byte("G"), 1<<20)} {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(junk)
		_ = c.CloseWrite()
		var resp response
		if err := readMessage(c, &resp, MaxResponseBytes); err == nil && (resp.Error == nil || resp.Error.Code != CodeBadRequest) {
			t.Errorf("%d bytes of junk: %+v", len(junk), resp)
		}
		c.Close()
	}
	c, err := net.Dial("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var resp response
	if err := errors.Join(writeMessage(c, request{Version: 99, Method: "echo"}, MaxRequestBytes), readMessage(c, &resp, MaxResponseBytes)); err != nil || resp.Error == nil || resp.Error.Code != CodeVersion {
		t.Errorf("another version: %+v, %v", resp, err)
	}
	if err := Call(t.Context(), dir, "echo", echo{}, nil); err != nil {
		t.Errorf("after the garbage: %v", err)
	}
}

const childEnv = "MEMSYNC_TEST_LOCK_CHILD"

// TestMain lets the test binary be the other process of the lock tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		l, err := Acquire(dir)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		// The lock is a file's, which the collector closes once nobody refers to it.
		runtime.GC()
		<-make(chan struct{}) // until killed
		_ = l.Release()
	}
	os.Exit(m.Run())
}

// C9: a second agent is refused; the lock of a killed one is free at once.
func TestLockAcrossProcesses(t *testing.T) {
	dir := shortTemp(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("locked"))
	if _, err := out.Read(line); err != nil || string(line) != "locked" {
		t.Fatalf("child said %q, %v", line, err)
	}
	_, err = Acquire(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("second lock: %v, want ErrLocked with process %d", err, cmd.Process.Pid)
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	l, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func FuzzReadMessage(f *testing.F) {
	var b bytes.Buffer
	if err := writeMessage(&b, request{Version: 1, Method: "status"}, MaxRequestBytes); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var req request
		if err := readMessage(bytes.NewReader(data), &req, MaxRequestBytes); err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeMessage(&again, req, MaxRequestBytes); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
