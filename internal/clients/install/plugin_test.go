package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/clients/install"
)

// pluginDir is the Claude Code plugin in the repository.
const pluginDir = "../../../plugins/claude-code"

func readJSON(t *testing.T, file string) (out map[string]any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// The plugin does what installing for a project does: the same hooks, the same server.
func TestPluginIsWhatIsInstalled(t *testing.T) {
	h := newHome(t)
	h.do("claude-code", install.Project, false)
	project := h.env.Dir
	if diff := cmp.Diff(readJSON(t, filepath.Join(project, ".claude", "settings.json"))["hooks"], readJSON(t, pluginDir+"/hooks/hooks.json")["hooks"]); diff != "" {
		t.Errorf("hooks/hooks.json differs from the events of package hooks (-installed +plugin):\n%s", diff)
	}
	if diff := cmp.Diff(readJSON(t, filepath.Join(project, ".mcp.json")), readJSON(t, pluginDir+"/.mcp.json")); diff != "" {
		t.Errorf(".mcp.json (-installed +plugin):\n%s", diff)
	}
}

// The marketplace offers the plugin where it lies.
func TestMarketplace(t *testing.T) {
	root := "../../.."
	offers, _ := readJSON(t, root+"/.claude-plugin/marketplace.json")["plugins"].([]any)
	if len(offers) != 1 {
		t.Fatalf("offers: %v", offers)
	}
	offer, _ := offers[0].(map[string]any)
	source, _ := offer["source"].(string)
	plugin := readJSON(t, filepath.Join(root, source, ".claude-plugin", "plugin.json"))
	if offer["name"] != plugin["name"] || offer["description"] == nil {
		t.Errorf("%v is offered, %v lies there", offer, plugin)
	}
}
