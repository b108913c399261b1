package archtest

import (
	"slices"
	"strings"
)

// module is the path of the module in go.mod.
const module = "github.com/memsvc/memsvc"

// rule says what one package may import besides the standard library.
type rule struct {
	// internal lists the packages below internal/ that it may import. An entry
	// that ends in "/..." stands for the package and everything below it.
	internal []string
	// pure forbids clock, disk, log, network and wire types.
	pure bool
	// testOnly marks a package that only tests and other such packages import.
	testOnly bool
}

// shared are the packages both programs stand on.
var shared = []string{
	"memory", "wire", "secretscan", "config", "telemetry", "buildinfo", "client", "lexical", "filelock", "wholefile",
}

// layers is the map of DESIGN: every package below internal/, with what it may
// import from there. "A package and its imports" reads upwards: nothing here may
// import a package that stands above it.
var layers = map[string]rule{
	// The ground.
	"memory":  {pure: true},
	"lexical": {pure: true},

	// Shared by both programs.
	"buildinfo":  {},
	"wire":       {internal: []string{"memory"}},
	"secretscan": {internal: []string{"memory"}},
	"config":     {internal: []string{"memory"}},
	"telemetry":  {internal: []string{"buildinfo"}},
	"client":     {internal: []string{"memory", "wire"}},
	"filelock":   {},
	"wholefile":  {},

	// The hub.
	"hub/store":          {internal: []string{"memory"}},
	"hub/store/inmem":    {internal: []string{"memory", "lexical", "hub/store"}},
	"hub/store/sqlite":   {internal: []string{"memory", "lexical", "filelock", "hub/store"}},
	"hub/store/postgres": {internal: []string{"memory", "lexical", "hub/store"}},
	"hub/store/archive":  {internal: []string{"memory", "hub/store"}},
	"hub/store/observed": {internal: []string{"memory", "hub/store"}},
	"hub/changefeed":     {internal: []string{"memory", "hub/store"}},
	"hub/service":        {internal: []string{"memory", "lexical", "hub/store", "hub/changefeed"}},
	"hub/authn":          {internal: []string{"memory", "hub/store"}},
	"hub/rpc":            {internal: []string{"memory", "wire", "telemetry", "hub/service", "hub/authn"}},
	"hub/rest":           {internal: []string{"memory"}},
	"hub":                {internal: append([]string{"hub/..."}, shared...)},

	// The agent's sync.
	"agent/reconcile": {internal: []string{"memory"}, pure: true},
	"agent/syncer":    {internal: []string{"memory", "agent/reconcile"}},
	// In-memory ports with faults, for tests of everything that stands on them.
	"agent/syncer/synctest": {internal: []string{"memory", "agent/syncer"}, testOnly: true},
	"agent/workspace":       {internal: []string{"memory", "filelock", "agent/syncer"}}, // implements syncer.Local
	"agent/watcher":         {},
	"agent/syncstate":       {internal: []string{"memory", "filelock", "wholefile", "agent/syncer"}}, // implements syncer.State
	"agent/control":         {internal: []string{"filelock"}},
	"agent":                 {internal: append([]string{"agent/...", "lifecycle/...", "clients/..."}, shared...)},

	// The local memory engine.
	"lifecycle/memdir":          {internal: []string{"memory", "filelock"}},
	"lifecycle/memories":        {internal: []string{"memory", "lifecycle/memdir"}},
	"lifecycle/transcript":      {internal: []string{"lexical"}},
	"lifecycle/recall":          {internal: []string{"memory", "lexical", "lifecycle/memdir", "lifecycle/model"}},
	"lifecycle/verify":          {},
	"lifecycle/inject":          {internal: []string{"memory", "wholefile", "lifecycle/recall", "lifecycle/transcript"}},
	"lifecycle/model":           {},
	"lifecycle/model/jsonhttp":  {internal: []string{"lifecycle/model"}},
	"lifecycle/model/anthropic": {internal: []string{"lifecycle/model", "lifecycle/model/jsonhttp"}},
	"lifecycle/model/openai":    {internal: []string{"lifecycle/model", "lifecycle/model/jsonhttp"}},
	"lifecycle/model/budget":    {internal: []string{"filelock", "wholefile", "lifecycle/model"}},
	"lifecycle/model/command":   {internal: []string{"lifecycle/model"}},
	"lifecycle/model/scripted":  {internal: []string{"lifecycle/model"}},
	"lifecycle/model/guarded":   {internal: []string{"lifecycle/inject", "lifecycle/model"}},
	"lifecycle/sandbox":         {internal: []string{"memory", "lifecycle/dates", "lifecycle/inject", "lifecycle/memdir", "lifecycle/memories", "lifecycle/model"}},
	"lifecycle/dates":           {pure: true},
	"lifecycle/extract":         {internal: []string{"memory", "lexical", "filelock", "wholefile", "lifecycle/dates", "lifecycle/memories", "lifecycle/memdir", "lifecycle/transcript", "lifecycle/model", "lifecycle/sandbox"}},
	"lifecycle/notes":           {internal: []string{"filelock", "wholefile", "lifecycle/extract", "lifecycle/transcript", "lifecycle/model"}},
	"lifecycle/dream":           {internal: []string{"memory", "lexical", "filelock", "wholefile", "lifecycle/dates", "lifecycle/memories", "lifecycle/memdir", "lifecycle/transcript", "lifecycle/verify", "lifecycle/notes", "lifecycle/extract", "lifecycle/model", "lifecycle/sandbox"}},
	"lifecycle/instructions":    {},
	"lifecycle/skills":          {},

	// The faces towards coding agents.
	"clients/hooks":    {internal: []string{"memory", "lifecycle/...", "agent/control"}},
	"clients/mcp":      {internal: []string{"memory", "lifecycle/...", "agent/control"}},
	"clients/install":  {internal: []string{"wholefile", "clients/hooks"}},
	"clients/livetest": {testOnly: true}, // real clients

	// Tests. The programs must never depend on them.
	"archtest":    {testOnly: true},
	"hubtest":     {internal: append([]string{"hub/...", "porttest"}, shared...), testOnly: true},
	"simtest":     {internal: append([]string{"hub/...", "agent/...", "hubtest"}, shared...), testOnly: true},
	"killtest":    {internal: append([]string{"hub/...", "agent/...", "hubtest", "pgtest", "porttest"}, shared...), testOnly: true},
	"pgtest":      {internal: []string{"porttest"}, testOnly: true},
	"porttest":    {internal: []string{"filelock"}, testOnly: true},
	"e2e":         {internal: append([]string{"hub/...", "agent/...", "hubtest"}, shared...), testOnly: true},
	"observetest": {internal: append([]string{"hub/...", "agent/...", "hubtest", "pgtest", "porttest"}, shared...), testOnly: true},
}

// ruleOf returns the rule of the package below internal/. A companion, X/xtest beside
// X as httptest is beside http, needs no row: it is for tests, and may import X and
// whatever X may.
func ruleOf(name string) (r rule, known bool) {
	if r, known = layers[name]; known {
		return r, true
	}
	parent, last, _ := cutLast(name)
	_, parentName, _ := cutLast(parent)
	r, known = layers[parent]
	if !known || last != parentName+"test" {
		return rule{}, false
	}
	return rule{internal: append(slices.Clone(r.internal), parent), testOnly: true}, true
}

// cutLast splits a path before its last segment; a path of one segment has no
// parent.
func cutLast(path string) (parent, last string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// programs says what the packages outside internal/ may import from there. The
// programs of hack/ are tools of the repository and are free.
var programs = map[string][]string{
	"cmd/memsvc":        {"hub"},
	"cmd/memsync-agent": {"agent"},
}

// testPackages may import test libraries; so may every companion.
var testPackages = []string{"hubtest", "simtest", "killtest", "pgtest", "e2e", "observetest", "porttest"}

// restricted says who alone may import a foreign package, or a package of api/.
// Keys are import path prefixes on segment borders; values are packages below
// internal/ or directories of the module.
var restricted = map[string][]string{
	// Generated types stop at the border, so that a change of the contract
	// stays a change of the border.
	module + "/api": {"hub/rpc", "hub/rest", "wire", "client", "api/..."},
	// A driver is known to its own backend only.
	"modernc.org/sqlite":       {"hub/store/sqlite"},
	"github.com/jackc/pgx":     {"hub/store/postgres", "pgtest"},
	"github.com/pressly/goose": {"hub/store/sqlite", "hub/store/postgres"},
	"database/sql":             {"hub/store/sqlite", "hub/store/postgres"},
	// One package each owns these.
	"github.com/zricethezav/gitleaks":        {"secretscan", "hack/..."},
	"github.com/fsnotify/fsnotify":           {"agent/watcher"},
	"github.com/grpc-ecosystem/grpc-gateway": {"hub/rest", "api/..."},
	"github.com/coreos/go-oidc":              {"hub/authn"},
	"github.com/go-jose/go-jose":             {"hub/authn/..."},
	"go.opentelemetry.io/otel":               {"telemetry"},
	"github.com/modelcontextprotocol":        {"clients/mcp"},
	"github.com/tailscale/hujson":            {"clients/install"},
	// The providers' SDKs are too large for a program that starts at every prompt.
	"github.com/anthropics/anthropic-sdk-go": {},
	"github.com/openai/openai-go":            {},
	// Domain code returns domain errors; only the border speaks status.
	"google.golang.org/grpc/status": {"wire", "client", "hub/rpc", "hub/rest", "api/..."},
	// Test libraries do not ship.
	"pgregory.net/rapid":              testPackages,
	"github.com/google/go-cmp":        testPackages,
	"github.com/rogpeppe/go-internal": testPackages,
	"testing":                         testPackages,
}

// impure are the standard packages a pure package may not import, with what they
// would let in.
var impure = map[string]string{
	"os":            "the disk",
	"os/exec":       "other processes",
	"io/ioutil":     "the disk",
	"path/filepath": "the machine's path rules; use path",
	"embed":         "nothing yet, and it must stay so",
	"net":           "the network",
	"net/http":      "the network",
	"log":           "a log",
	"log/slog":      "a log",
	"database/sql":  "a database",
	"runtime":       "the machine",
	"math/rand":     "chance",
	"math/rand/v2":  "chance",
	"crypto/rand":   "chance",
}

// foreignPure are the only foreign modules a pure package may import.
var foreignPure = []string{
	"golang.org/x/text",
	"go.yaml.in/yaml",
	"github.com/sergi/go-diff",
}

// clockCalls are the functions of package time that read a clock or wait for one.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
