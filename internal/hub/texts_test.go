package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// What becomes of a text that a request brings.
const (
	guarded   = "guarded"     // kept or shown; the guard judges it, and a secret refuses the request
	withheld  = "withheld"    // shown; the guard judges it, and a secret is left out
	exact     = "exact"       // kept; it must be of a form that no secret has: hex, a rule that exists
	hashed    = "hashed"      // kept as a hash only
	ignored   = "ignored"     // the hub's own value takes its place
	passing   = "passing"     // neither kept nor shown to anybody else
	inArchive = "in archives" // see TestArchivesAreGuarded
)

// texts says what becomes of every text of every request. A field that is new fails
// the tests until it stands here, and is dealt with so.
var texts = map[string]string{
	"GetProjectRequest.name":             passing,
	"GetProjectRequest.cursor.epoch":     passing,
	"GetProjectRequest.cursor.commit_id": passing,

	"ListMemoriesRequest.parent":     passing,
	"ListMemoriesRequest.page_token": passing,

	"GetMemoryRequest.name":          passing,
	"BatchGetMemoriesRequest.parent": passing,
	"BatchGetMemoriesRequest.paths":  passing,

	"CommitChangesRequest.parent":                    guarded,
	"CommitChangesRequest.changes.path":              guarded,
	"CommitChangesRequest.changes.put.content":       guarded,
	"CommitChangesRequest.changes.put.renamed_from":  exact, // of a memory that is there, and goes
	"CommitChangesRequest.changes.precondition.etag": exact,
	"CommitChangesRequest.message":                   guarded,
	"CommitChangesRequest.request_id":                hashed,
	"CommitChangesRequest.author.principal":          ignored,
	"CommitChangesRequest.author.machine":            guarded,
	"CommitChangesRequest.author.client":             guarded,
	"CommitChangesRequest.author.session":            guarded,
	"CommitChangesRequest.epoch":                     passing,

	"WatchMemoriesRequest.projects.project":          passing,
	"WatchMemoriesRequest.projects.cursor.epoch":     passing,
	"WatchMemoriesRequest.projects.cursor.commit_id": passing,
	"WatchMemoriesRequest.agent.agent_id":            withheld,
	"WatchMemoriesRequest.agent.machine":             withheld,
	"WatchMemoriesRequest.agent.version":             withheld,

	"ListCommitsRequest.parent":     passing,
	"ListCommitsRequest.page_token": passing,
	"ListCommitsRequest.path":       passing,

	"RestoreMemoriesRequest.parent":           passing,
	"RestoreMemoriesRequest.paths":            passing,
	"RestoreMemoriesRequest.request_id":       hashed,
	"RestoreMemoriesRequest.author.principal": ignored,
	"RestoreMemoriesRequest.author.machine":   guarded,
	"RestoreMemoriesRequest.author.client":    guarded,
	"RestoreMemoriesRequest.author.session":   guarded,

	"SearchMemoriesRequest.parent": passing,
	"SearchMemoriesRequest.query":  passing,

	"GetGuardPolicyRequest.name": passing,

	"ReportConflictRequest.parent":                    passing,
	"ReportConflictRequest.conflict.name":             ignored,
	"ReportConflictRequest.conflict.path":             guarded,
	"ReportConflictRequest.conflict.theirs":           guarded,
	"ReportConflictRequest.conflict.hub_etag":         exact,
	"ReportConflictRequest.conflict.base_etag":        exact,
	"ReportConflictRequest.conflict.author.principal": ignored,
	"ReportConflictRequest.conflict.author.machine":   guarded,
	"ReportConflictRequest.conflict.author.client":    guarded,
	"ReportConflictRequest.conflict.author.session":   guarded,

	"ListConflictsRequest.parent":     passing,
	"ListConflictsRequest.page_token": passing,
	"ResolveConflictRequest.name":     passing,

	"CreateTeamRequest.team_id":    guarded,
	"ListTeamsRequest.page_token":  passing,
	"UpdateTeamRequest.team.name":  passing,
	"CreateProjectRequest.parent":  passing,
	"ListProjectsRequest.parent":   passing,
	"PurgeProjectRequest.name":     passing,
	"RevokeTokenRequest.token_id":  passing,
	"ListTokensRequest.team_id":    passing,
	"ListTokensRequest.page_token": passing,

	"CreateProjectRequest.project_id":                      guarded,
	"ListProjectsRequest.page_token":                       passing,
	"CreateTokenRequest.display_name":                      guarded,
	"CreateTokenRequest.team_id":                           guarded,
	"CreateTokenRequest.project_id":                        guarded,
	"ListAgentsRequest.team_id":                            passing,
	"ListAgentsRequest.page_token":                         passing,
	"ListAuditEventsRequest.team_id":                       passing,
	"ListAuditEventsRequest.page_token":                    passing,
	"UpdateGuardPolicyRequest.policy.name":                 passing,
	"UpdateGuardPolicyRequest.policy.fingerprint_key":      ignored,
	"UpdateGuardPolicyRequest.policy.allowed_fingerprints": exact,
	"UpdateGuardPolicyRequest.policy.allowed_rules":        exact,
	"UpdateGuardPolicyRequest.policy.rules_toml":           guarded,

	"FindRedactedRequest.parent":       passing,
	"FindRedactedRequest.fingerprints": exact,

	"RedactMemoryRequest.name":   passing,
	"RedactMemoryRequest.etags":  exact,
	"RedactMemoryRequest.reason": guarded,

	"ExportArchiveRequest.scope": passing,
	"ImportArchiveRequest.chunk": inArchive,
}

// leaf is a field of a request, or of a message in it, that holds text.
type leaf []protoreflect.FieldDescriptor

func (l leaf) name(request protoreflect.MessageDescriptor) string {
	name := string(request.Name())
	for _, f := range l {
		name += "." + string(f.Name())
	}
	return name
}

// leaves are the texts of a message, at any depth.
func leaves(d protoreflect.MessageDescriptor, at leaf) (out []leaf) {
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		here := append(slices.Clone(at), f)
		switch f.Kind() {
		case protoreflect.StringKind, protoreflect.BytesKind:
			out = append(out, here)
		case protoreflect.MessageKind, protoreflect.GroupKind:
			if f.Message().ParentFile().Package() == "memsvc.v1" {
				out = append(out, leaves(f.Message(), here)...)
			}
		}
	}
	return out
}

// plant puts text into a leaf of m, and makes the messages on the way to it.
func (l leaf) plant(m protoreflect.Message, change func(old string) string) {
	for _, f := range l[:len(l)-1] {
		if f.IsList() {
			list := m.Mutable(f).List()
			if list.Len() == 0 {
				list.AppendMutable()
			}
			m = list.Get(0).Message()
			continue
		}
		m = m.Mutable(f).Message()
	}
	f := l[len(l)-1]
	value := func(old protoreflect.Value) protoreflect.Value {
		if f.Kind() == protoreflect.BytesKind {
			return protoreflect.ValueOfBytes([]byte(change(string(old.Bytes()))))
		}
		return protoreflect.ValueOfString(change(old.String()))
	}
	if !f.IsList() {
		m.Set(f, value(m.Get(f)))
		return
	}
	list := m.Mutable(f).List()
	if list.Len() == 0 {
		list.Append(list.NewElement())
	}
	list.Set(0, value(list.Get(0)))
}

// methods are the methods of both services by the name of their request.
func methods(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	out := map[string]protoreflect.MethodDescriptor{}
	for _, file := range []protoreflect.FileDescriptor{memsvcv1.File_memsvc_v1_memory_service_proto, memsvcv1.File_memsvc_v1_admin_service_proto} {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				m := file.Services().Get(i).Methods().Get(j)
				out[string(m.Input().Name())] = m
			}
		}
	}
	return out
}

// TestEveryTextIsClassified walks the contract: no text comes in of which nobody has
// said what becomes of it, and nothing is said of a field that is gone.
func TestEveryTextIsClassified(t *testing.T) {
	left := maps.Clone(texts)
	for _, m := range methods(t) {
		for _, l := range leaves(m.Input(), nil) {
			name := l.name(m.Input())
			if texts[name] == "" {
				t.Errorf("%s: what becomes of this text? guard it, or give it a strict form, and say so in texts", name)
			}
			delete(left, name)
		}
	}
	for name := range left {
		t.Errorf("%s: no such field", name)
	}
}

// sound returns a request that works, for each that holds more than names.
func sound(request string) proto.Message {
	name := project + "/memories/a.md"
	switch request {
	case "GetProjectRequest":
		return &memsvcv1.GetProjectRequest{Name: project}
	case "GetMemoryRequest":
		return &memsvcv1.GetMemoryRequest{Name: name}
	case "BatchGetMemoriesRequest":
		return &memsvcv1.BatchGetMemoriesRequest{Parent: project, Paths: []string{"a.md"}}
	case "CommitChangesRequest":
		return &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("new.md", time.Now().String())}, Message: "m", Author: &memsvcv1.Author{Machine: "m"}}
	case "WatchMemoriesRequest":
		return &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{{Project: project}}, Agent: &memsvcv1.AgentInfo{AgentId: "agent-7", Machine: "m", Version: "v"}}
	case "RestoreMemoriesRequest":
		return &memsvcv1.RestoreMemoriesRequest{Parent: project, ValidateOnly: true}
	case "SearchMemoriesRequest":
		return &memsvcv1.SearchMemoriesRequest{Parent: project, Query: "x"}
	case "GetGuardPolicyRequest":
		return &memsvcv1.GetGuardPolicyRequest{Name: "teams/acme/guardPolicy"}
	case "ReportConflictRequest":
		return &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: "a.md", Theirs: note("theirs")}}
	case "ResolveConflictRequest":
		return &memsvcv1.ResolveConflictRequest{Name: project + "/conflicts/0123456789abcdef"}
	case "CreateTeamRequest":
		return &memsvcv1.CreateTeamRequest{TeamId: "fresh"}
	case "UpdateTeamRequest":
		return &memsvcv1.UpdateTeamRequest{Team: &memsvcv1.Team{Name: "teams/acme"}}
	case "CreateProjectRequest":
		return &memsvcv1.CreateProjectRequest{Parent: "teams/acme", ProjectId: "fresh"}
	case "ListProjectsRequest":
		return &memsvcv1.ListProjectsRequest{Parent: "teams/acme"}
	case "PurgeProjectRequest":
		return &memsvcv1.PurgeProjectRequest{Name: "teams/acme/projects/none"}
	case "CreateTokenRequest":
		return &memsvcv1.CreateTokenRequest{DisplayName: "x", TeamId: "acme", ProjectId: "app", Role: memsvcv1.Role_ROLE_READER}
	case "RevokeTokenRequest":
		return &memsvcv1.RevokeTokenRequest{TokenId: "tok-0123456789abcdef"}
	case "UpdateGuardPolicyRequest":
		return &memsvcv1.UpdateGuardPolicyRequest{Policy: &memsvcv1.GuardPolicy{Name: "teams/acme/guardPolicy", Version: 1}}
	case "FindRedactedRequest":
		return &memsvcv1.FindRedactedRequest{Parent: project}
	case "RedactMemoryRequest":
		return &memsvcv1.RedactMemoryRequest{Name: project + "/memories/old.md", Reason: "r"}
	case "ExportArchiveRequest":
		return &memsvcv1.ExportArchiveRequest{Scope: project}
	case "ListMemoriesRequest", "ListCommitsRequest", "ListConflictsRequest":
		t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("memsvc.v1." + request))
		if err != nil {
			panic(err)
		}
		m := t.New()
		m.Set(m.Descriptor().Fields().ByName("parent"), protoreflect.ValueOfString(project))
		return m.Interface()
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("memsvc.v1." + request))
	if err != nil {
		panic(err)
	}
	return t.New().Interface()
}

// planting is one text put into one field.
type planting struct {
	secret string
	change func(old string) string
}

// plantings puts secrets of every shape into a field: one in a sentence, one that is a
// word, one that is as an id has to be; alone and at the end of a name.
func plantings(n int) []planting {
	const lower = "abcdefghijklmnopqrstuvwxyz0123456789"
	id := []byte("glpat-")
	for i, c := range []byte(fakeSecret(1000 + n)[4:24]) {
		id = append(id, lower[(int(c)*7+i*11+n)%len(lower)])
	}
	var out []planting
	for secret, text := range map[string]string{plantedPassword: "password: " + plantedPassword, fakeSecret(n): fakeSecret(n), string(id): string(id)} {
		out = append(out,
			planting{secret, func(string) string { return text }},
			planting{secret, func(old string) string {
				end := ""
				if strings.HasSuffix(old, ".md") {
					end = ".md"
				}
				return old[:strings.LastIndex(old, "/")+1] + text + end
			}},
			planting{secret, func(old string) string {
				// In the middle of a name: another team, or another project.
				if parts := strings.Split(old, "/"); len(parts) >= 4 {
					parts[len(parts)/2|1] = text
					return strings.Join(parts, "/")
				}
				return old + text
			}})
	}
	return out
}

// TestSecretsPlantedEverywhere puts secrets into every text of every request, with the
// tokens of an admin of the hub and of a stranger: none is repeated in an answer, none
// is in a log, a metric, the audit log or the store, and none is shown to anybody.
func TestSecretsPlantedEverywhere(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	as(t, h, h.Token("acme", "app", "writer")).mustCommit(t, put("a.md", "first"), put("old.md", "old"))
	conn := dial(t, h)
	tokens := map[string]string{"admin": h.AdminToken, "stranger": h.Token("rival", "", "admin")}
	var secrets []string
	n := 0
	for request, method := range methods(t) {
		if method.IsStreamingClient() {
			continue
		}
		for _, l := range leaves(method.Input(), nil) {
			name := l.name(method.Input())
			n++
			for _, p := range plantings(n) {
				secrets = append(secrets, p.secret)
				for who, token := range tokens {
					msg := sound(request)
					l.plant(msg.ProtoReflect(), p.change)
					ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), patience)
					err := send(ctx, conn, method, msg)
					cancel()
					st, _ := status.FromError(err)
					if strings.Contains(fmt.Sprint(st.Proto()), p.secret) {
						t.Errorf("%s by %s: the answer repeats the secret: %v", name, who, err)
					}
					if what := texts[name]; what == guarded && who == "admin" && err == nil {
						t.Errorf("%s: it was taken", name)
					}
				}
			}
		}
	}
	admin := as(t, h, h.AdminToken)
	agents, err := admin.ListAgents(admin.ctx(t), &memsvcv1.ListAgentsRequest{PageSize: 1000})
	if err != nil || len(agents.GetAgents()) == 0 {
		t.Fatal(agents, err)
	}
	shown := agents.String() + metricsText(t, h)
	slices.Sort(secrets)
	secrets = slices.Compact(secrets)
	for _, secret := range secrets {
		if strings.Contains(shown, secret) {
			t.Errorf("the agents or the metrics show %s", secret)
		}
	}
	nowhere(t, h, secrets...)
}

// send makes one call and reads at most one answer of a stream.
func send(ctx context.Context, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, msg proto.Message) error {
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	answer, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return err
	}
	if !method.IsStreamingServer() {
		return conn.Invoke(ctx, path, msg, answer.New().Interface())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(msg); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(answer.New().Interface())
}

// TestGuardedTextsSayWhy refuses secrets in guarded texts with the reason and the field.
func TestGuardedTextsSayWhy(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	as(t, h, h.Token("acme", "app", "writer")).mustCommit(t, put("a.md", "first"), put("old.md", "old"))
	conn := dial(t, h)
	for request, method := range methods(t) {
		for _, l := range leaves(method.Input(), nil) {
			name := l.name(method.Input())
			if texts[name] != guarded || method.IsStreamingClient() {
				continue
			}
			msg := sound(request)
			secret := plantings(7)[0]
			for _, p := range plantings(7) {
				if strings.HasPrefix(p.secret, "glpat-") {
					secret = p
				}
			}
			l.plant(msg.ProtoReflect(), func(old string) string {
				switch {
				case strings.HasSuffix(name, "path"):
					return secret.secret + ".md"
				case strings.HasSuffix(name, "parent"):
					return "teams/acme/projects/" + secret.secret
				case strings.HasSuffix(name, "rules_toml"):
					return "# " + secret.secret + "\n"
				}
				return secret.secret
			})
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+h.AdminToken)
			err := send(ctx, conn, method, msg)
			if name == "CommitChangesRequest.parent" {
				// An admin of the hub makes no project by a commit; a writer of the team does.
				ctx = metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+h.Token("acme", "", "writer"))
				err = send(ctx, conn, method, msg)
			}
			if st := status.Convert(err); err == nil || wire.ReasonOf(st) != memory.ReasonSecretDetected {
				t.Errorf("%s: %v, want %s", name, err, memory.ReasonSecretDetected)
			}
		}
	}
}

// TestSecretsPlantedInREST does the same through HTTP: in paths, parameters, their
// names, headers and bodies.
func TestSecretsPlantedInREST(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	token := h.Token("acme", "app", "writer")
	as(t, h, token).mustCommit(t, put("a.md", "first"))
	var secrets []string
	for n, p := range plantings(5000) {
		if n%3 != 0 {
			continue // the shapes of names come below
		}
		secret := p.change("")
		secrets = append(secrets, p.secret)
		in := url.PathEscape(secret)
		memories := "/v1/" + project + "/memories"
		for _, path := range []string{
			memories + "/" + in + ".md", memories + "/" + in, memories + "/a.md?message=" + url.QueryEscape(secret),
			memories + "/a.md?requestId=" + url.QueryEscape(secret), memories + "/a.md?revision=" + url.QueryEscape(secret),
			memories + "?pageToken=" + url.QueryEscape(secret), memories + "?" + url.QueryEscape(secret) + "=1",
			memories + ":search?query=" + url.QueryEscape(secret), memories + ":watch?afterRevision=" + url.QueryEscape(secret),
			"/v1/teams/" + in, "/v1/teams/acme/projects/" + in + "/memories", "/v1/tokens/" + in + ":revoke", "/v1/" + in,
		} {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
				if method == http.MethodGet && strings.Contains(path, ":watch") {
					path = strings.Replace(path, "afterRevision=", "afterRevision=x", 1) // or it would go on
				}
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.HTTPAddr+path, strings.NewReader("{"+strconv.Quote(secret)+": 1}"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Request-Id", secret)
				r.Header.Set("If-Match", strconv.Quote(secret))
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if cerr := res.Body.Close(); err != nil || cerr != nil {
					t.Fatal(err, cerr)
				}
				if all := fmt.Sprint(res.Header, string(body)); strings.Contains(all, p.secret) {
					t.Errorf("%s %s: %s repeats the secret: %s", method, path, res.Status, all)
				}
			}
		}
	}
	nowhere(t, h, secrets...)
}
