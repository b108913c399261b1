package hub_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/durationpb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// attempts are all calls on a project and its team, for whoever is not allowed to.
func attempts(t testing.TB, c caller, name string) map[string]func() error {
	key, err := memory.ParseProjectKey(name)
	if err != nil {
		t.Fatal(err)
	}
	team := "teams/" + string(key.Team)
	return map[string]func() error{
		"get project": func() error {
			_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: name})
			return err
		},
		"get project with cursor": func() error {
			_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: name, Cursor: &memsvcv1.Cursor{Epoch: "e", Revision: 7}})
			return err
		},
		"list": func() error {
			_, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: name})
			return err
		},
		"get": func() error {
			_, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: name + "/memories/a.md"})
			return err
		},
		"batch": func() error {
			_, err := c.BatchGetMemories(c.ctx(t), &memsvcv1.BatchGetMemoriesRequest{Parent: name, Paths: []string{"a.md"}})
			return err
		},
		"log": func() error {
			_, err := c.ListCommits(c.ctx(t), &memsvcv1.ListCommitsRequest{Parent: name})
			return err
		},
		"search": func() error {
			_, err := c.SearchMemories(c.ctx(t), &memsvcv1.SearchMemoriesRequest{Parent: name, Query: "x"})
			return err
		},
		"commit": func() error {
			_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: name, Changes: []*memsvcv1.Change{put("a.md", "x")}})
			return err
		},
		"commit of a bad path": func() error {
			_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: name, Changes: []*memsvcv1.Change{put("../a.md", "x")}})
			return err
		},
		"commit of a secret": func() error {
			_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: name, Changes: []*memsvcv1.Change{put("a.md", fakeSecret(9))}})
			return err
		},
		"commit with an epoch": func() error {
			_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: name, Changes: []*memsvcv1.Change{put("a.md", "x")}, Epoch: "e"})
			return err
		},
		"restore": func() error {
			_, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: name, Revision: 1})
			return err
		},
		"report conflict": func() error {
			_, err := c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: name, Conflict: &memsvcv1.Conflict{Path: "a.md"}})
			return err
		},
		"list conflicts": func() error {
			_, err := c.ListConflicts(c.ctx(t), &memsvcv1.ListConflictsRequest{Parent: name})
			return err
		},
		"resolve conflict": func() error {
			_, err := c.ResolveConflict(c.ctx(t), &memsvcv1.ResolveConflictRequest{Name: name + "/conflicts/0123456789abcdef"})
			return err
		},
		"find redacted": func() error {
			_, err := c.FindRedacted(c.ctx(t), &memsvcv1.FindRedactedRequest{Parent: name})
			return err
		},
		"purge": func() error {
			_, err := c.PurgeProject(c.ctx(t), &memsvcv1.PurgeProjectRequest{Name: name})
			return err
		},
		"redact": func() error {
			_, err := c.RedactMemory(c.ctx(t), &memsvcv1.RedactMemoryRequest{Name: name + "/memories/a.md"})
			return err
		},
		"export": func() error {
			stream, err := c.ExportArchive(c.ctx(t), &memsvcv1.ExportArchiveRequest{Scope: name})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		},
		"watch": func() error {
			stream, err := c.WatchMemories(c.ctx(t), &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{{Project: name}}})
			if err != nil {
				return err
			}
			m, err := stream.Recv()
			if err != nil {
				return err
			}
			if s := m.GetStatus(); s != nil {
				return fmt.Errorf("%s %s %v", s.GetReason(), s.GetMessage(), s.GetDetail())
			}
			return nil
		},
		"list projects": func() error {
			_, err := c.ListProjects(c.ctx(t), &memsvcv1.ListProjectsRequest{Parent: team})
			return err
		},
		"get policy": func() error {
			_, err := c.GetGuardPolicy(c.ctx(t), &memsvcv1.GetGuardPolicyRequest{Name: team + "/guardPolicy"})
			return err
		},
		"update policy": func() error {
			_, err := c.UpdateGuardPolicy(c.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: &memsvcv1.GuardPolicy{Name: team + "/guardPolicy"}})
			return err
		},
		"update team": func() error {
			_, err := c.UpdateTeam(c.ctx(t), &memsvcv1.UpdateTeamRequest{Team: &memsvcv1.Team{Name: team}})
			return err
		},
		"create project": func() error {
			_, err := c.CreateProject(c.ctx(t), &memsvcv1.CreateProjectRequest{Parent: team, ProjectId: string(key.Project)})
			return err
		},
		"create token": func() error {
			_, err := c.CreateToken(c.ctx(t), &memsvcv1.CreateTokenRequest{DisplayName: "x", TeamId: string(key.Team), ProjectId: string(key.Project), Role: memsvcv1.Role_ROLE_READER})
			return err
		},
		"list tokens": func() error {
			_, err := c.ListTokens(c.ctx(t), &memsvcv1.ListTokensRequest{TeamId: string(key.Team)})
			return err
		},
		"list agents": func() error {
			_, err := c.ListAgents(c.ctx(t), &memsvcv1.ListAgentsRequest{TeamId: string(key.Team)})
			return err
		},
		"list audit events": func() error {
			_, err := c.ListAuditEvents(c.ctx(t), &memsvcv1.ListAuditEventsRequest{TeamId: string(key.Team)})
			return err
		},
	}
}

// answer is everything that a caller can see of an error, with what was asked for and
// the request's id taken out.
func answer(err error, name string) string {
	key, _ := memory.ParseProjectKey(name)
	text := fmt.Sprint(err)
	if st, ok := status.FromError(err); ok {
		text = prototext.MarshalOptions{Multiline: true}.Format(st.Proto())
	}
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.Contains(line, "request_id") {
			kept = append(kept, strings.Join(strings.Fields(line), " "))
		}
	}
	text = strings.Join(kept, "\n")
	if i := strings.Index(text, "request_id:"); i >= 0 {
		text = text[:i]
	}
	text = strings.ReplaceAll(text, string(key.Project), "PROJECT")
	return strings.ReplaceAll(text, string(key.Team), "TEAM")
}

// TestOutsideItsTeamATokenLearnsNothing asks about things that exist and things that
// do not, in every way, with tokens of every reach that do not cover them: the answers
// are equal, and take equally long.
func TestOutsideItsTeamATokenLearnsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		owner := as(t, h, h.Token("rival1", "plans1", "writer"))
		for i := range 20 {
			if _, err := owner.CommitChanges(owner.ctx(t), &memsvcv1.CommitChangesRequest{Parent: "teams/rival1/projects/plans1", Changes: []*memsvcv1.Change{put(fmt.Sprintf("%c.md", 'a'+i), "x")}}); err != nil {
				t.Fatal(err)
			}
		}
		h.Token("acme", "app", "reader")
		h.Token("acme", "sister", "reader")
		for name, tc := range map[string]struct {
			token           string
			exists, missing string
		}{
			"project writer, other team":     {h.Token("acme", "app", "writer"), "teams/rival1/projects/plans1", "teams/nobody/projects/nothin"},
			"project admin, other team":      {h.Token("acme", "app", "admin"), "teams/rival1/projects/plans1", "teams/nobody/projects/nothin"},
			"team admin, other team":         {h.Token("acme", "", "admin"), "teams/rival1/projects/plans1", "teams/nobody/projects/nothin"},
			"team reader, other team":        {h.Token("acme", "", "reader"), "teams/rival1/projects/plans1", "teams/nobody/projects/nothin"},
			"project writer, sister project": {h.Token("acme", "app", "writer"), "teams/acme/projects/sister", "teams/acme/projects/absent"},
			"project admin, sister project":  {h.Token("acme", "app", "admin"), "teams/acme/projects/sister", "teams/acme/projects/absent"},
		} {
			t.Run(name, func(t *testing.T) {
				c := as(t, h, tc.token)
				exists, missing := attempts(t, c, tc.exists), attempts(t, c, tc.missing)
				for what, try := range exists {
					a, b := try(), missing[what]()
					got, want := answer(a, tc.exists), answer(b, tc.missing)
					if got != want {
						t.Errorf("%s: the answers differ\nexists:  %s\nmissing: %s", what, got, want)
					}
					// Within its own team a token may ask what there is, and is told of its own
					// project only.
					teamWide := slices.Contains([]string{"list projects", "get policy", "list tokens"}, what)
					if a == nil && !(teamWide && strings.Contains(name, "sister")) {
						t.Errorf("%s succeeded", what)
					}
				}
				// A machine that has other work may make either wait, but not one of them
				// every time.
				var told string
				for range 10 {
					var yes, no []time.Duration
					for range 200 {
						begin := time.Now()
						_ = exists["get"]()
						mid := time.Now()
						_ = missing["get"]()
						yes, no = append(yes, mid.Sub(begin)), append(no, time.Since(mid))
					}
					slices.Sort(yes)
					slices.Sort(no)
					if a, b := yes[100], no[100]; a <= 2*b && b <= 2*a {
						return
					} else {
						told = fmt.Sprintf("%v where it exists, %v where not", a, b)
					}
				}
				t.Errorf("median time of an answer, ten times: %s", told)
			})
		}
		// What a token may list is its own.
		c := as(t, h, h.Token("acme", "app", "reader"))
		teams, err := c.ListTeams(c.ctx(t), &memsvcv1.ListTeamsRequest{})
		if err != nil || len(teams.GetTeams()) != 1 || teams.GetTeams()[0].GetName() != "teams/acme" {
			t.Errorf("teams %v, %v", teams, err)
		}
		projects, err := c.ListProjects(c.ctx(t), &memsvcv1.ListProjectsRequest{Parent: "teams/acme"})
		if err != nil || len(projects.GetProjects()) != 1 {
			t.Errorf("projects %v, %v", projects, err)
		}
	})
}

// TestRoles lets a reader read and nothing else, and a writer not administer.
func TestRoles(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	writer := as(t, h, h.Token("acme", "app", "writer"))
	writer.mustCommit(t, put("a.md", "x"))
	reads := []string{"find redacted", "get project", "list", "get", "batch", "log", "search", "list conflicts", "list projects", "get policy", "watch"}
	writes := []string{"commit", "restore", "report conflict"}
	reader := as(t, h, h.Token("acme", "app", "reader"))
	tries := attempts(t, reader, project)
	for what, try := range tries {
		err := try()
		if slices.Contains(reads, what) {
			if err != nil {
				t.Errorf("a reader cannot %s: %v", what, err)
			}
			continue
		}
		if what != "get project with cursor" && status.Code(err) != codes.PermissionDenied {
			t.Errorf("a reader's %s: %v", what, err)
		}
	}
	for what, try := range attempts(t, writer, project) {
		err := try()
		switch {
		case slices.Contains(reads, what), slices.Contains(writes, what):
			if err != nil {
				t.Errorf("a writer cannot %s: %v", what, err)
			}
		case slices.Contains([]string{"purge", "redact", "export", "update policy", "update team", "create project", "create token", "list tokens", "list agents", "list audit events"}, what):
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("a writer's %s: %v", what, err)
			}
		}
	}
}

// TestWhoCreatesProjects follows ruling 13.3.
func TestWhoCreatesProjects(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	h.Token("acme", "app", "reader")
	commit := func(token, parent string) error {
		c := as(t, h, token)
		_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: parent, Changes: []*memsvcv1.Change{put("a.md", "x")}})
		return err
	}
	if err := commit(h.Token("acme", "", "writer"), "teams/acme/projects/fresh"); err != nil {
		t.Errorf("a team's writer in a new team: %v", err)
	}
	wantReason(t, commit(h.AdminToken, "teams/acme/projects/fresh2"), memory.ReasonNotFound)
	wantReason(t, commit(h.Token("acme", "app", "writer"), "teams/acme/projects/fresh3"), memory.ReasonNotFound)
	admin := as(t, h, h.Token("acme", "", "admin"))
	if _, err := admin.UpdateTeam(admin.ctx(t), &memsvcv1.UpdateTeamRequest{Team: &memsvcv1.Team{Name: "teams/acme"}}); err != nil {
		t.Fatal(err)
	}
	wantReason(t, commit(h.Token("acme", "", "writer"), "teams/acme/projects/fresh4"), memory.ReasonNotFound)
	if _, err := admin.CreateProject(admin.ctx(t), &memsvcv1.CreateProjectRequest{Parent: "teams/acme", ProjectId: "fresh4"}); err != nil {
		t.Error(err)
	}
	if err := commit(h.Token("acme", "", "writer"), "teams/acme/projects/fresh4"); err != nil {
		t.Error(err)
	}
}

// TestRevokedStreamEnds revokes the token of an open watch, whose credential nobody would
// look at again meanwhile.
func TestRevokedStreamEnds(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.AuthRecheck = time.Hour }})
	token, id := h.TokenWithID("acme", "app", "reader")
	c := as(t, h, token)
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project})
	other := as(t, h, h.Token("acme", "app", "writer"))
	stays := other.watch(t, &memsvcv1.WatchedProject{Project: project})
	admin := as(t, h, h.AdminToken)
	if _, err := admin.RevokeToken(admin.ctx(t), &memsvcv1.RevokeTokenRequest{TokenId: id}); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = w.stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream ended with %v", err)
	}
	_, err = c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
	wantReason(t, err, memory.ReasonUnauthenticated)
	other.mustCommit(t, put("a.md", "x"))
	stays.commit(t)
}

// TestExpiredStreamEnds lets a token expire under an open watch.
func TestExpiredStreamEnds(t *testing.T) {
	clock := new(shifted)
	h := hubtest.Start(t, hubtest.Options{Now: clock.Now, Deps: func(d *hub.Deps) { d.AuthRecheck = 50 * time.Millisecond }})
	h.Token("acme", "app", "reader")
	admin := as(t, h, h.AdminToken)
	res, err := h.Service().CreateProject(t.Context(), hubtest.Admin(), memory.ProjectKey{Team: "acme", Project: "brief"})
	if err != nil {
		t.Fatal(err, res)
	}
	made, err := admin.CreateToken(admin.ctx(t), &memsvcv1.CreateTokenRequest{
		DisplayName: "brief", TeamId: "acme", ProjectId: "brief", Role: memsvcv1.Role_ROLE_READER, Ttl: durationpb.New(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := as(t, h, made.GetSecret()).watch(t, &memsvcv1.WatchedProject{Project: "teams/acme/projects/brief"})
	clock.move(time.Hour)
	for err == nil {
		_, err = w.stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream ended with %v", err)
	}
}

// heap returns the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// alive fails unless the hub commits, watches and answers on every port.
func alive(t *testing.T, h *hubtest.Hub, token, text string) {
	t.Helper()
	c := as(t, h, token)
	c.mustCommit(t, put("alive.md", text))
	for _, url := range []string{"http://" + h.HTTPAddr + "/openapi.json", "http://" + h.OpsAddr + "/readyz"} {
		// A busy machine may be too slow for the check of readiness.
		hubtest.Eventually(t, patience, url+" answers", func() bool {
			res, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, res.Body)
			if cerr := res.Body.Close(); err != nil || cerr != nil {
				t.Fatalf("%s: %v %v", url, err, cerr)
			}
			return res.StatusCode == http.StatusOK
		})
	}
}

// TestGarbage throws 4 MB of noise, and frames that are nearly right, at every port.
func TestGarbage(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	alive(t, h, token, "before")
	before := heap()
	noise := make([]byte, 4<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	preface := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
	attacks := map[string][]byte{
		"noise":               noise,
		"zeros":               make([]byte, 4<<20),
		"preface and noise":   append(slices.Clone(preface), noise...),
		"settings and noise":  slices.Concat(preface, settings, noise),
		"huge frame":          slices.Concat(preface, settings, []byte{0xff, 0xff, 0xff, 1, 4, 0, 0, 0, 1}, noise),
		"headers of no sense": slices.Concat(preface, settings, []byte{0, 0, 5, 1, 4, 0, 0, 0, 1}, []byte{0xff, 0xff, 0xff, 0xff, 0xff}),
		"endless settings":    slices.Concat(preface, bytes.Repeat(settings, 100_000)),
		"endless pings":       slices.Concat(preface, settings, bytes.Repeat([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 100_000)),
		"a long line":         append([]byte("GET /"), bytes.Repeat([]byte("a"), 4<<20)...),
		"endless headers":     append([]byte("GET / HTTP/1.1\r\nHost: x\r\n"), bytes.Repeat([]byte("A: b\r\n"), 600_000)...),
		"request smuggling":   []byte("POST /v1/teams HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
	}
	var wg sync.WaitGroup
	for _, addr := range []string{h.GRPCAddr, h.HTTPAddr, h.OpsAddr} {
		for name, data := range attacks {
			wg.Go(func() {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Errorf("%s at %s: %v", name, addr, err)
					return
				}
				defer func() { _ = c.Close() }()
				// The hub hangs up in the middle, or takes it all; both will do.
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = c.Write(data)
				_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			})
		}
	}
	wg.Wait()
	alive(t, h, token, "after")
	// The hub may have to notice yet that the connections are gone.
	hubtest.Eventually(t, patience, "memory grew by no more than 32 MiB", func() bool { return heap()-before <= 32<<20 })
}

// TestMalformedMessages sends frames of gRPC whose messages are no messages.
func TestMalformedMessages(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	conn := dial(t, h)
	c := as(t, h, token)
	for name, raw := range map[string][]byte{
		"noise": {0xff, 0xff, 0xff, 0xff, 0x0f}, "cut": {0x0a, 0x40, 'x'}, "deep": bytes.Repeat([]byte{0x12, 0x7f}, 5000),
	} {
		err := conn.Invoke(c.ctx(t), "/memsvc.v1.MemoryService/CommitChanges", raw, &memsvcv1.CommitChangesResponse{}, grpc.ForceCodecV2(rawCodec{}))
		if code := status.Code(err); code != codes.Internal && code != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Over the message limit, and a method that does not exist.
	err := conn.Invoke(c.ctx(t), "/memsvc.v1.MemoryService/CommitChanges", make([]byte, memory.MaxMessageBytes+1), &memsvcv1.CommitChangesResponse{}, grpc.ForceCodecV2(rawCodec{}))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("13 MiB: %v", err)
	}
	err = conn.Invoke(c.ctx(t), "/memsvc.v1.MemoryService/Drop", []byte{}, &memsvcv1.CommitChangesResponse{}, grpc.ForceCodecV2(rawCodec{}))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
	alive(t, h, token, "after")
}

// TestIdleConnections opens thousands of connections that say nothing or stop in the
// middle, on every port.
func TestIdleConnections(t *testing.T) {
	const each = 1500
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	alive(t, h, token, "before")
	before := heap()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range each {
		for _, addr := range []string{h.GRPCAddr, h.HTTPAddr, h.OpsAddr} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatalf("connection %d: %v", len(conns), err)
			}
			conns = append(conns, c)
			if i%2 == 0 {
				if _, err := c.Write([]byte("PRI * HTT")); err != nil && addr != h.OpsAddr {
					t.Fatal(err)
				}
			}
		}
	}
	alive(t, h, token, "during")
	grown := heap() - before
	t.Logf("%d connections: %d KiB each", len(conns), grown/1024/int64(len(conns)))
	if grown > int64(len(conns))*100<<10 {
		t.Errorf("%d connections take %d MiB", len(conns), grown>>20)
	}
}

// TestConnectionBound closes what is over the bound and goes on serving.
func TestConnectionBound(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.MaxConnections = 5 }})
	token := h.Token("acme", "app", "writer")
	c := as(t, h, token)
	c.mustCommit(t, put("a.md", "x"))
	for range 20 {
		extra, err := net.Dial("tcp", h.GRPCAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = extra.Close() }()
		_, _ = io.WriteString(extra, greeting) // the hub may have hung up already
	}
	c.mustCommit(t, put("a.md", "y"))
	hubtest.Eventually(t, patience, "refused connections are counted", func() bool {
		return strings.Contains(metricsText(t, h), `memsvc_connections_refused_total{bound="port",port="grpc"} 16`)
	})
}

// TestSlowWatchers stops reading on some streams: writers and other watchers go on,
// memory stays bounded, and the slow ones find everything when they read again.
func TestSlowWatchers(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	c := as(t, h, token)
	var slow []*watcher
	for range 50 {
		slow = append(slow, as(t, h, token).watch(t, &memsvcv1.WatchedProject{Project: project}))
	}
	fast := c.watch(t, &memsvcv1.WatchedProject{Project: project})
	before := heap()
	const commits = 400
	for i := range commits {
		c.mustCommit(t, put("a.md", fmt.Sprint(i, strings.Repeat(" filler", 20<<10))))
		if got := fast.commit(t); got.GetRevision() != int64(i+1) {
			t.Fatalf("fast watcher got %d, want %d", got.GetRevision(), i+1)
		}
	}
	// 400 commits of 140 KB stand before each of 50 watchers; the history itself is in
	// memory too (the store's), and the cache holds 64 MiB.
	history := int64(commits * 150 << 10)
	if grown := heap() - before - history; grown > 160<<20 {
		t.Errorf("memory grew by %d MiB beside the history", grown>>20)
	}
	for want := range int64(commits) {
		if got := slow[7].commit(t); got.GetRevision() != want+1 {
			t.Fatalf("slow watcher got %d, want %d", got.GetRevision(), want+1)
		}
	}
}

// TestLostClientsLeaveNothing opens watches, kills their connections, and expects the
// goroutines back.
func TestLostClientsLeaveNothing(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	alive(t, h, token, "x")
	http.DefaultClient.CloseIdleConnections()
	base := runtime.NumGoroutine()
	for range 3 {
		var conns []*grpc.ClientConn
		for range 20 {
			conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			c := caller{memsvcv1.NewMemoryServiceClient(conn), nil, token}
			for range 10 {
				c.watch(t, &memsvcv1.WatchedProject{Project: project})
			}
		}
		for _, conn := range conns {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	hubtest.Eventually(t, patience, "goroutines return to what they were", func() bool {
		return runtime.NumGoroutine() <= base+10
	})
}

// TestKeepalive pings as often as an agent may, with and without calls, and is not
// told to calm down.
func TestKeepalive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 16 s of real time: gRPC has no fake clock for pings")
	}
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "reader")
	conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: patience, PermitWithoutStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := caller{memsvcv1.NewMemoryServiceClient(conn), nil, token}
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project})
	begin := time.Now()
	for time.Since(begin) < 16*time.Second {
		if _, err := w.stream.Recv(); err != nil { // bookmarks
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
	}
}

// TestRateLimit holds back one token and not the others.
func TestRateLimit(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.Rate, c.RateBurst = 0.01, 20 }})
	c := as(t, h, h.Token("acme", "app", "reader"))
	var err error
	for range 25 {
		if _, err = c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project}); err != nil {
			break
		}
	}
	wantReason(t, err, memory.ReasonRateLimited)
	other := as(t, h, h.Token("acme", "app", "reader"))
	if _, err := other.GetProject(other.ctx(t), &memsvcv1.GetProjectRequest{Name: project}); err != nil {
		t.Error(err)
	}
}

// TestQuestionsAboutTextsCostByTheirSize: whoever guesses at redacted texts is past the
// rate after few questions, and whoever asks about a few is not.
func TestQuestionsAboutTextsCostByTheirSize(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.Rate, c.RateBurst = 0.01, 20 }})
	w := as(t, h, h.Token("acme", "app", "writer"))
	w.mustCommit(t, put("a.md", "fine"))
	ask := func(c caller, n int) error {
		req := &memsvcv1.FindRedactedRequest{Parent: project}
		for i := range n {
			req.Fingerprints = append(req.Fingerprints, fmt.Sprintf("%064x", i))
		}
		_, err := c.FindRedacted(c.ctx(t), req)
		return err
	}
	few := as(t, h, h.Token("acme", "app", "reader"))
	for range 15 {
		if err := ask(few, 3); err != nil {
			t.Fatal(err)
		}
	}
	many := as(t, h, h.Token("acme", "app", "reader"))
	if err := ask(many, 150); err != nil {
		t.Fatal(err)
	}
	wantReason(t, ask(many, 150), memory.ReasonRateLimited)
}

// TestQuota refuses growth over a team's bounds and lets shrinking through.
func TestQuota(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.AdminToken)
	if _, err := admin.UpdateTeam(admin.ctx(t), &memsvcv1.UpdateTeamRequest{Team: &memsvcv1.Team{Name: "teams/acme", MaxProjectFiles: 2}}); err != nil {
		t.Fatal(err)
	}
	c.mustCommit(t, put("a.md", "x"), put("b.md", "x"))
	_, err := c.commit(t, put("c.md", "x"))
	wantReason(t, err, memory.ReasonQuotaExceeded)
	c.mustCommit(t, put("c.md", "x"), &memsvcv1.Change{Path: "a.md", Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}})
}

// TestMemoryOfNobody asks for credentials that never were.
func TestMemoryOfNobody(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	for _, token := range []string{"", "msv_", "x", strings.Repeat("A", 5000), h.AdminToken + "x", "msv_" + strings.Repeat("0", 49)} {
		c := as(t, h, token)
		_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("token of %d bytes: %v", len(token), err)
		}
	}
	if strings.Contains(h.Log.String(), h.AdminToken) {
		t.Error("the log holds a token")
	}
}
