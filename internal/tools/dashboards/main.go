// Command dashboards writes the Grafana dashboards of deploy/grafana/dashboards, with
// Grafana's own types, so that what it writes is what Grafana reads. It has a module
// of its own: neither program of the product needs these types.
//
// usage: dashboards DIRECTORY
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the directory to write to")
	}
	known := cog.NewRuntime() // what reading back needs to know
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(table.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	for name, b := range map[string]*dashboard.DashboardBuilder{
		"memsvc-hub": hub(), "memsvc-teams": teams(), "memsvc-agents": agents(),
	} {
		d, err := b.Build()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := d.Validate(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		numberPanels(&d)
		if err := write(filepath.Join(args[0], name+".json"), d); err != nil {
			return err
		}
	}
	return nil
}

// numberPanels gives every panel its id: links to panels, and Grafana's own edits,
// need one that stays.
func numberPanels(d *dashboard.Dashboard) {
	for i := range d.Panels {
		id := uint32(i + 1)
		switch p := &d.Panels[i]; {
		case p.Panel != nil:
			p.Panel.Id = &id
		case p.RowPanel != nil:
			p.RowPanel.Id = id
		}
	}
}

func write(file string, d dashboard.Dashboard) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return err
	}
	// It must come back the same way, strictly.
	var again dashboard.Dashboard
	if why := reasons(again.UnmarshalJSONStrict(text.Bytes())); why != "" {
		return fmt.Errorf("%s does not read back: %s", file, why)
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// reasons spells out what the SDK has against something; it answers with an error that
// holds none where it has nothing.
func reasons(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
