package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
)

// liveModel is the language model as the settings file names it now, for programs that
// run for long. The file is read again when it is another one than before, and only when
// somebody asks.
type liveModel struct {
	file    string // "" = there is none
	counter budget.Counter
	secrets model.Secrets // what the model is not shown
	log     *slog.Logger

	mu       sync.Mutex // guards what follows
	seen     os.FileInfo
	settings ModelSettings
	wrong    error // why the settings cannot be used
}

// liveModel follows the settings file of this command.
func (c *command) liveModel(log *slog.Logger) (*liveModel, error) {
	file, err := filepath.Abs(expandHome(string(c.g.Config)))
	if err != nil || c.g.Config == "" {
		file = ""
	}
	return &liveModel{file: file, counter: c.state.modelCounter(c.Now), secrets: c.secrets, log: log}, err
}

// read returns the settings, and what is wrong with them. Settings that cannot be used
// are none: a model that somebody just took out must not be asked for a slip beside it.
func (l *liveModel) read() (ModelSettings, error) {
	if l == nil || l.file == "" {
		return ModelSettings{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fi, err := os.Stat(l.file)
	if err == nil && l.seen != nil && os.SameFile(fi, l.seen) && fi.ModTime().Equal(l.seen.ModTime()) && fi.Size() == l.seen.Size() {
		return l.settings, l.wrong
	}
	first := l.seen == nil && l.wrong == nil
	l.seen = fi
	var next ModelSettings
	if err == nil {
		err = config.ReadSections(l.file, map[string]any{"model": &next})
	}
	if err == nil {
		err = next.check()
	}
	if err != nil {
		next, l.seen = ModelSettings{}, nil
		if l.wrong == nil || l.wrong.Error() != err.Error() {
			l.log.Warn("the settings of the language model cannot be used; it is not asked", "error", oneLine(err))
		}
	} else if !first {
		l.log.Info("settings read again", "model_provider", next.Provider, "model", next.Name)
	}
	l.settings, l.wrong = next, err
	return next, err
}

// open returns the model to ask now, nil without one, and whether it has no tools.
func (l *liveModel) open() (m model.Model, textOnly bool) {
	s, err := l.read()
	if err != nil || s.Provider == "" {
		return nil, false
	}
	return s.open(l.counter, l.secrets), s.textOnly()
}

// chooser returns the model that chooses memories for prompts, and its time; nil without
// one. A program is not started for every prompt.
func (l *liveModel) chooser() (model.Model, time.Duration) {
	s, err := l.read()
	if err != nil || s.Provider == "" || s.textOnly() {
		return nil, 0
	}
	return s.open(l.counter, l.secrets), s.timeout()
}

// strict returns what finds the secrets that no model is shown and no notes hold.
func (l *liveModel) strict() model.Secrets {
	if l == nil {
		return strictSecrets()
	}
	return l.secrets
}

// perDay is how many tokens a day has; 0 without a model.
func (l *liveModel) perDay() int {
	s, err := l.read()
	if err != nil || s.Provider == "" {
		return 0
	}
	return s.perDay()
}
