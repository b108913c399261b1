package agent

import (
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

type modelCmd struct {
	Check modelCheckCmd `cmd:"" help:"Make one tiny call and say what works."`
}

type modelCheckCmd struct {
	JSON bool `name:"json" help:"Print JSON; see docs/models.md."`
}

// modelCheck is what model check prints.
type modelCheck struct {
	*ModelStatus
	Tools bool  `json:"tools"` // it can use tools
	MS    int64 `json:"ms"`
}

// Run asks the configured model once.
func (x *modelCheckCmd) Run(c *command) error {
	m, err := c.model()
	if err != nil {
		return err
	}
	if m == nil {
		return usage("no model is configured; give a settings file with a section model, see docs/models.md")
	}
	began := time.Now()
	resp, err := probe(c.ctx, m, !c.models.textOnly())
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	out := modelCheck{ModelStatus: c.state.modelStatus(c.models, c.models.check(), c.Now), Tools: len(resp.Calls()) > 0, MS: time.Since(began).Milliseconds()}
	if x.JSON {
		return printJSON(c.Stdout, out)
	}
	fmt.Fprintf(c.Stdout, "it answers, in %d ms for %d tokens\n", out.MS, resp.Usage.Input+resp.Usage.Output)
	switch {
	case out.Tools:
		fmt.Fprintln(c.Stdout, "it uses tools: extraction and tidying work in rounds")
	case resp.Stop == model.StopLength:
		fmt.Fprintln(c.Stdout, "its answer was cut off before it said anything of use; whether it uses tools is not known")
	default:
		fmt.Fprintln(c.Stdout, "it did not use a tool: it is asked for text alone")
	}
	fmt.Fprint(c.Stdout, out.line())
	return nil
}

// withEngine adds what this machine knows of the model and of dreams where the daemon
// did not tell.
func (c *command) withEngine(st Status) Status {
	if st.Dreams == nil {
		st.Dreams = c.state.dreams()
	}
	if st.Model == nil {
		st.Model = c.state.modelStatus(c.models, c.models.check(), c.Now)
	}
	return st
}
