package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository's.
var root = filepath.Join("..", "..", "..", "..")

// repository lays out what rehearse reads, with one text replaced in one file.
func repository(t *testing.T, file, old, now string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"Dockerfile", "docker-compose.yml"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		if name == file {
			if changed = strings.Replace(changed, old, now, 1); changed == string(text) {
				t.Fatalf("%s does not hold %q", name, old)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy", "compose"), os.DirFS(filepath.Join(root, "deploy", "compose"))); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"deploy/grafana/dashboards", "deploy/prometheus/rules"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// check returns what rehearse says about a repository.
func check(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), []string{"-check", dir}, &out); err != nil {
		return out.String() + err.Error()
	}
	return ""
}

// TestFindings breaks the files in one place each.
func TestFindings(t *testing.T) {
	if said := check(t, repository(t, "", "", "")); said != "" {
		t.Fatalf("the files as they are: %s", said)
	}
	for name, c := range map[string]struct{ file, old, now, want string }{
		"root":                        {"Dockerfile", "USER 65532:65532", "USER 0:0", `stage hub: USER "0:0"`},
		"a user by name":              {"Dockerfile", "USER 65532:65532", "USER memsvc", `stage hub: USER "memsvc"`},
		"no user":                     {"Dockerfile", "USER 65532:65532\n", "", `stage hub: USER ""`},
		"a program that is not there": {"Dockerfile", `ENTRYPOINT ["/usr/local/bin/memsvc"]`, `ENTRYPOINT ["/bin/memsvc"]`, "ENTRYPOINT"},
		"a program that needs sh":     {"Dockerfile", `ENTRYPOINT ["/usr/local/bin/memsvc"]`, `ENTRYPOINT /usr/local/bin/memsvc`, "needs a shell"},
		"a check that needs sh":       {"Dockerfile", `CMD ["/usr/local/bin/memsvc", "healthcheck"]`, `CMD memsvc healthcheck`, "HEALTHCHECK has to be"},
		"another program's check":     {"Dockerfile", `CMD ["/usr/local/bin/memsvc", "healthcheck"]`, `CMD ["/usr/bin/curl", "localhost"]`, "HEALTHCHECK"},
		"a base with a system":        {"Dockerfile", "FROM scratch AS agent", "FROM debian:12 AS agent", "no stage agent from scratch"},
		"a file from this machine":    {"Dockerfile", "COPY --from=build /src/bin/memsvc", "COPY bin/memsvc", "from the build stage alone"},
		"an instruction that is none": {"Dockerfile", "USER 65532:65532", "USERS 65532:65532", "USERS"},

		"a key that is none":          {"docker-compose.yml", "stop_grace_period: 60s", "stop_grace: 60s", "stop_grace"},
		"a service that is not there": {"docker-compose.yml", "      postgres: {condition: service_healthy}", "      postgre: {condition: service_healthy}", "postgre"},
		"a volume that is not there":  {"docker-compose.yml", "  token-two:\n  team-one:", "  team-one:", "token-two"},
		"a stage that is not there":   {"docker-compose.yml", "target: hub", "target: hubs", "no such image"},
		"a root that can be written":  {"docker-compose.yml", "read_only: true", "read_only: false", "want read_only: true"},
		"capabilities":                {"docker-compose.yml", "cap_drop: [ALL]", "cap_drop: [NET_RAW]", "cap_drop"},
		"an image without version":    {"docker-compose.yml", "postgres:17", "postgres", `image "postgres" has no version`},
		"no way to wait":              {"docker-compose.yml", "      postgres: {condition: service_healthy}", "      postgres: {condition: service_started}", "not until it is started"},
		"a step that never ends":      {"docker-compose.yml", "restart: on-failure:5", "restart: unless-stopped", "what others wait for ends"},
		"a port for everybody":        {"docker-compose.yml", `"127.0.0.1:7420:7420"`, `"7420:7420"`, "published beyond loopback"},
		"a mount of nothing":          {"docker-compose.yml", "./deploy/compose/prometheus.yml", "./deploy/compose/prom.yml", "no such file"},
		"a mount that is written to":  {"docker-compose.yml", "prometheus.yml:ro", "prometheus.yml", "want it read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			said := check(t, repository(t, c.file, c.old, c.now))
			if !strings.Contains(said, c.want) {
				t.Errorf("want %q in: %s", c.want, said)
			}
		})
	}
}

// TestPasswordIsAsked: without one, the compose file is no way to start a database.
func TestPasswordIsAsked(t *testing.T) {
	dir := repository(t, "", "", "")
	name := filepath.Join(dir, "docker-compose.yml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	weak := strings.NewReplacer("${POSTGRES_PASSWORD:?}", "secret", "${POSTGRES_PASSWORD:?put", "${POSTGRES_PASSWORD:-put").Replace(string(text))
	if err := os.WriteFile(name, []byte(weak), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := check(t, dir); !strings.Contains(said, "without POSTGRES_PASSWORD it has to be refused") {
		t.Errorf("with a password of its own: %s", said)
	}
}

// TestContextIsSmall: what lies about in a checkout never reaches an engine.
func TestContextIsSmall(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	for _, name := range []string{
		"go.mod", "Makefile", "cmd/memsvc/main.go", "internal/hub/run.go", "api/openapi/memsvc.swagger.json",
		"admin.token", ".env", "memsvc-data/hub.db", "docs/api.md", "internal/hub/run_test.go", "internal/tools/helm/go.mod", "bin/memsvc", ".git/config",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ignore, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".dockerignore"), ignore, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := buildContext(dir, to); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = filepath.WalkDir(to, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, rerr := filepath.Rel(to, name)
			got, err = append(got, filepath.ToSlash(rel)), rerr
		}
		return err
	})
	want := []string{"Makefile", "api/openapi/memsvc.swagger.json", "cmd/memsvc/main.go", "go.mod", "internal/hub/run.go"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, the context holds %q, want %q", err, got, want)
	}
}
