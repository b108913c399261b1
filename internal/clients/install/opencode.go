package install

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
)

// pluginMark is the first line of a plugin that is ours.
const pluginMark = "// memsvc: made by 'memsync-agent install opencode', and removed by it with --uninstall.\n"

//go:embed opencode.js
var pluginText []byte

// pluginFile is a file that is ours as a whole.
func pluginFile(path string, e Env) file {
	return file{path: path, edit: func(before []byte, remove bool, _ []byte) ([]byte, error) {
		if len(before) > 0 && !bytes.HasPrefix(before, []byte(pluginMark)) {
			if remove {
				return before, nil
			}
			return nil, errors.New("another plugin has this name; rename it first")
		}
		if remove {
			return nil, nil
		}
		argv, err := json.Marshal(append([]string{e.Command.Exe, "hook"}, e.Command.Args...))
		if err != nil {
			return nil, err
		}
		return append([]byte(pluginMark), bytes.Replace(pluginText, []byte(`["memsync-agent", "hook"]`), argv, 1)...), nil
	}}
}
