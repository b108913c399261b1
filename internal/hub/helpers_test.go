package hub_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// patience bounds what must happen; it is never waited out when all is well.
const patience = time.Minute

// oftenEnough are bookmarks so frequent that a watch which waits for something else is not
// taken for one that lacks them, on a busy machine either.
const oftenEnough = time.Second

// caller is a connection with a token.
type caller struct {
	memsvcv1.MemoryServiceClient
	memsvcv1.AdminServiceClient
	token string
}

func dial(t testing.TB, h *hubtest.Hub) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(memory.MaxMessageBytes), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func as(t testing.TB, h *hubtest.Hub, token string) caller {
	t.Helper()
	conn := dial(t, h)
	return caller{memsvcv1.NewMemoryServiceClient(conn), memsvcv1.NewAdminServiceClient(conn), token}
}

func (c caller) ctx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // a watch lasts for a test
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

const project = "teams/acme/projects/app"

func note(text string) []byte {
	return []byte("---\nname: n\ndescription: d\ntype: project\n---\n" + text + "\n")
}

func put(path, text string) *memsvcv1.Change {
	return &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: note(text)}}}
}

func (c caller) commit(t testing.TB, changes ...*memsvcv1.Change) (*memsvcv1.CommitChangesResponse, error) {
	t.Helper()
	return c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: project, Changes: changes})
}

func (c caller) mustCommit(t testing.TB, changes ...*memsvcv1.Change) *memsvcv1.CommitChangesResponse {
	t.Helper()
	res, err := c.commit(t, changes...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantReason(t testing.TB, err error, want memory.Reason) {
	t.Helper()
	st, ok := status.FromError(err)
	if err == nil || !ok || wire.ReasonOf(st) != want {
		t.Fatalf("error %v, want %s", err, want)
	}
}

// fakeSecret is a well-formed and worthless credential of a kind that the guard knows.
func fakeSecret(n int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	rnd := rand.New(rand.NewPCG(7, uint64(n)))
	out := []byte("ghp_")
	for range 36 {
		out = append(out, digits[rnd.IntN(len(digits))])
	}
	return string(out)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// shifted is the system's clock, and may be moved ahead: what ends at a time need not
// last as long as the test needs to get there.
type shifted struct{ ahead atomic.Int64 }

func (s *shifted) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())).UTC() }

func (s *shifted) move(d time.Duration) { s.ahead.Add(int64(d)) }

// rawCodec sends bytes as they are and reads nothing.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return "proto" }

// greeting is how a connection of HTTP/2 begins, a preface and empty settings. The hub soon
// hangs up on who does not say that much.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

func containsLine(log, part string) bool { return strings.Contains(log, part) }

// metricsText is what the ops port shows now.
func metricsText(t *testing.T, h *hubtest.Hub) string {
	t.Helper()
	res, err := http.Get("http://" + h.OpsAddr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	return string(text)
}
