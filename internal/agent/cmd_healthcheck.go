package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
)

type healthcheckCmd struct {
	Timeout time.Duration `help:"How long to wait for the answer." default:"3s"`
}

// Run asks the daemon over its socket, for containers that have no shell. What a link
// waits for is none of its business: a restart heals neither a conflict nor a hub that
// is away, and status tells of both.
func (h *healthcheckCmd) Run(c *command) error {
	if h.Timeout < 0 {
		return negativeTimeout(h.Timeout)
	}
	ctx, cancel := context.WithTimeout(c.ctx, h.Timeout)
	defer cancel()
	var st Status
	switch err := control.Call(ctx, string(c.state), methodStatus, nil, &st); {
	case errors.Is(err, control.ErrNoDaemon):
		return fmt.Errorf("healthcheck: no daemon serves %s", c.state)
	case err != nil:
		return fmt.Errorf("healthcheck: %w", err)
	}
	fmt.Fprintf(c.Stdout, "serving, links: %d\n", len(st.Links))
	return nil
}
