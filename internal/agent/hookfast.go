package agent

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// plainHook reports whether a command line is that of a hook as `install` writes it into
// a client's configuration: no flags, and no settings file in the environment. A client
// runs it at every prompt, so it goes past the grammar of all commands, which takes
// longer to build than a hook takes to run.
func plainHook(args []string, getenv func(string) string) bool {
	return isHook(args) && len(args) <= 2 && args[0] == "hook" && !strings.HasPrefix(args[len(args)-1], "-") && getenv("MEMSYNC_CONFIG") == ""
}

// runPlainHook answers the event. The flags that every command has come from the
// environment, as the grammar would take them. It always says 0: a hook never breaks a
// session.
func (app App) runPlainHook(ctx context.Context) int {
	// The process ends before garbage would matter.
	debug.SetGCPercent(400)
	g := grammar{LogLevel: os.Getenv("MEMSYNC_LOG_LEVEL")}
	dir := os.Getenv("MEMSYNC_STATE_DIR")
	if dir == "" {
		var err error
		if dir, err = DefaultStateDir(os.Getenv); err != nil {
			return ExitOK
		}
	}
	state, err := absDir(dir)
	if err != nil {
		return ExitOK
	}
	recall, err := strconv.ParseBool(os.Getenv("MEMSYNC_RECALL"))
	x := hookCmd{Recall: recall || err != nil}
	if len(app.Args) == 2 {
		x.Event = app.Args[1]
	}
	_ = x.Run(&command{App: app, ctx: ctx, state: stateDir(state), secrets: strictSecrets(), g: &g}) // it says so itself, where somebody asks
	return ExitOK
}
