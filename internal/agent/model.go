package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/anthropic"
	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
	modelcommand "github.com/memsvc/memsvc/internal/lifecycle/model/command"
	"github.com/memsvc/memsvc/internal/lifecycle/model/guarded"
	"github.com/memsvc/memsvc/internal/lifecycle/model/openai"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// ModelSettings is the settings file's section "model": which language model helps, and
// how much of it. The zero value is none. See docs/models.md.
type ModelSettings struct {
	Provider    string        `yaml:"provider"`     // anthropic, openai or command; "" = none
	Name        string        `yaml:"name"`         // of the model, as the provider calls it
	Endpoint    string        `yaml:"endpoint"`     // "" = the provider's own
	KeyFile     string        `yaml:"key-file"`     // holds the key; read for each call
	KeyEnv      string        `yaml:"key-env"`      // the environment variable with the key
	Plaintext   bool          `yaml:"plaintext"`    // speak without TLS to an endpoint beyond this machine
	Command     []string      `yaml:"command"`      // the program and its arguments
	DailyTokens int           `yaml:"daily-tokens"` // 0 = defaultDailyTokens
	Timeout     time.Duration `yaml:"timeout"`      // of a call; 0 = defaultModelTimeout
}

const (
	defaultDailyTokens  = 1_000_000
	defaultModelTimeout = time.Minute
	// hookModelTimeout is how long a prompt may wait for the model before the ranker
	// answers: a person waits for it.
	hookModelTimeout = 1500 * time.Millisecond
)

// The providers by name.
const (
	providerAnthropic = "anthropic"
	providerOpenAI    = "openai"
	providerCommand   = "command"
)

// check says everything that is wrong with the settings.
func (s ModelSettings) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	switch s.Provider {
	case "":
		if s.Name+s.Endpoint+s.KeyFile+s.KeyEnv != "" || len(s.Command) > 0 || s.DailyTokens != 0 || s.Timeout != 0 || s.Plaintext {
			bad("say which provider: %s, %s or %s", providerAnthropic, providerOpenAI, providerCommand)
		}
	case providerAnthropic, providerOpenAI:
		if s.Name == "" {
			bad("provider %s needs the name of the model", s.Provider)
		}
		if len(s.Command) > 0 {
			bad("command is for provider %s only", providerCommand)
		}
	case providerCommand:
		if len(s.Command) == 0 || s.Command[0] == "" {
			bad("provider %s needs command, a list of the program and its arguments", providerCommand)
		} else if p := expandHome(s.Command[0]); strings.ContainsRune(p, filepath.Separator) && !filepath.IsAbs(p) {
			bad("command: give the program's name or its absolute path")
		}
		if s.Endpoint+s.KeyFile+s.KeyEnv != "" {
			bad("provider %s takes neither endpoint nor key", providerCommand)
		}
	default:
		bad("provider is none of %s, %s and %s", providerAnthropic, providerOpenAI, providerCommand)
	}
	if s.KeyFile != "" && s.KeyEnv != "" {
		bad("give key-file or key-env, not both")
	}
	if s.DailyTokens < 0 || s.Timeout < 0 {
		bad("daily-tokens and timeout cannot be negative")
	}
	if err := s.checkEndpoint(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return usage("%s", oneLine(errors.Join(errs...)))
}

// checkEndpoint refuses what is no plain address, and a key or text in clear beyond this
// machine. It repeats nothing: a key may stand in the wrong place.
func (s ModelSettings) checkEndpoint() error {
	if s.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("model: endpoint is no http:// or https:// address without user, query and fragment")
	}
	host := u.Host
	if u.Port() == "" {
		host += ":80"
	}
	if u.Scheme == "http" && !loopback(host) && !s.Plaintext {
		return errors.New("model: endpoint has no TLS and is not on this machine; use https://, or plaintext: true where something else protects the way")
	}
	return nil
}

// key returns how the key is found. Without a word about it, the provider's usual
// variable is used, and at the provider's own endpoint only: no other host gets that key.
func (s ModelSettings) key() func() (string, error) {
	env := s.KeyEnv
	if env == "" && s.KeyFile == "" && s.Endpoint == "" {
		env = map[string]string{providerAnthropic: "ANTHROPIC_API_KEY", providerOpenAI: "OPENAI_API_KEY"}[s.Provider]
	}
	switch {
	case s.KeyFile != "":
		return func() (string, error) {
			b, err := os.ReadFile(expandHome(s.KeyFile))
			if err != nil {
				return "", fmt.Errorf("key-file: %w", err)
			}
			return oneKey(string(b), "key-file "+s.KeyFile)
		}
	case env != "":
		return func() (string, error) { return oneKey(os.Getenv(env), "the environment variable "+env) }
	}
	return func() (string, error) { return "", nil }
}

// oneKey checks a key, and never repeats it.
func oneKey(text, where string) (string, error) {
	key := strings.TrimSpace(text)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s holds no key: want one word", where)
	}
	return key, nil
}

// open returns the model of the settings within its day's tokens; nil without settings.
// Every way to a model leads through here, and so past the border that leaves out what
// secrets finds.
func (s ModelSettings) open(counter budget.Counter, secrets model.Secrets) model.Model {
	var m model.Model
	switch s.Provider {
	case providerAnthropic:
		m = keyless{anthropic.New(s.Name, s.Endpoint, s.key()), s.key()}
	case providerOpenAI:
		m = keyless{openai.New(s.Name, s.Endpoint, s.key()), s.key()}
	case providerCommand:
		args := slices.Clone(s.Command)
		args[0] = expandHome(args[0])
		m = modelcommand.New(args)
	default:
		return nil
	}
	return budget.Model{Model: guarded.Model{Model: m, Secrets: secrets}, Counter: counter, PerDay: s.perDay(), Timeout: s.timeout()}
}

func (s ModelSettings) perDay() int {
	if s.DailyTokens == 0 {
		return defaultDailyTokens
	}
	return s.DailyTokens
}

func (s ModelSettings) timeout() time.Duration {
	if s.Timeout == 0 {
		return defaultModelTimeout
	}
	return s.Timeout
}

// textOnly reports a model that has no tools.
func (s ModelSettings) textOnly() bool { return s.Provider == providerCommand }

// modelCounter counts the tokens of this state directory.
func (s stateDir) modelCounter(now func() time.Time) budget.Counter {
	return budget.Counter{File: s.path("model-tokens.json"), Now: now}
}

// model returns the configured model, nil if there is none, or what is wrong with the
// settings.
func (c *command) model() (model.Model, error) {
	if err := c.models.check(); err != nil {
		return nil, err
	}
	return c.models.open(c.state.modelCounter(c.Now), c.secrets), nil
}

// modelOrNone returns the configured model; nil if there is none, or if its settings
// cannot be used, which is said in one line. What works without a model goes on.
func (c *command) modelOrNone() model.Model {
	m, err := c.model()
	if err != nil {
		c.warnNoModel(err)
		return nil
	}
	return m
}

func (c *command) warnNoModel(err error) {
	fmt.Fprintf(c.Stderr, "memsync-agent: the settings of the language model cannot be used; it is not asked: %s\n", oneLine(err))
}

// selector chooses memories with the configured model.
func (c *command) selector() (recall.Selector, error) {
	return c.selectorOf(c.models), c.models.check()
}

func (c *command) selectorOf(s ModelSettings) recall.Selector {
	return recall.Selector{Model: s.open(c.state.modelCounter(c.Now), c.secrets), Secrets: c.secrets, Timeout: min(s.timeout(), cmp.Or(c.ModelTime, recall.DefaultModelTimeout))}
}

// hookSelector chooses memories for a prompt that a person waits for. Settings that
// cannot work, and a program, which takes longer to start than there is time, leave it
// to the ranker.
func (c *command) hookSelector() recall.Selector {
	s, err := c.selector()
	if err != nil || c.models.textOnly() {
		return recall.Selector{}
	}
	s.Timeout = min(s.Timeout, cmp.Or(c.ModelTime, hookModelTimeout))
	return s
}

// ModelStatus is what `status` tells of the language model.
type ModelStatus struct {
	Provider    string `json:"provider"`
	Name        string `json:"name,omitempty"`
	DailyTokens int    `json:"daily_tokens"`
	budget.Count
	Error string `json:"error,omitempty"`
}

// modelStatus returns what was used of the configured model, and what is wrong with it;
// nil without one.
func (s stateDir) modelStatus(m ModelSettings, wrong error, now func() time.Time) *ModelStatus {
	if m.Provider == "" && wrong == nil {
		return nil
	}
	st := &ModelStatus{Provider: m.Provider, Name: m.Name, DailyTokens: m.perDay()}
	n, err := s.modelCounter(now).Read()
	st.Count = n
	if err == nil {
		err = wrong
	}
	if err != nil {
		st.Error = oneLine(err)
	}
	return st
}

// line is what status says of it.
func (s *ModelStatus) line() string {
	if s.Provider == "" {
		return "model: none is asked; " + visible(s.Error) + "\n"
	}
	line := fmt.Sprintf("model %s: %d of %d tokens today in %s", strings.TrimSpace(visible(s.Provider)+" "+visible(s.Name)), s.Today.Tokens(), s.DailyTokens, count(s.Today.Calls, "call"))
	if s.Today.Failed > 0 {
		line += fmt.Sprintf(", %d failed", s.Today.Failed)
	}
	if s.Today.Tokens() >= s.DailyTokens {
		line += "; it is not asked again before tomorrow (UTC)"
	}
	if s.Error != "" {
		line += "; " + visible(s.Error)
	}
	return line + "\n"
}

// probe is the one tiny call of `model check`.
func probe(ctx context.Context, m model.Model, tools bool) (model.Response, error) {
	req := model.Request{MaxTokens: 64, Messages: []model.Message{model.Say(model.RoleUser, "Answer with the one word: ready")}}
	if tools {
		req.Messages = []model.Message{model.Say(model.RoleUser, "Call the tool named ready. Say nothing else.")}
		req.Tools = []model.Tool{{Name: "ready", Description: "Says that you are ready.", Schema: []byte(`{"type":"object","properties":{}}`)}}
	}
	return m.Complete(ctx, req)
}
