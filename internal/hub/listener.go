package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// listen takes the hub's addresses, all or none: gRPC, HTTP, ops.
func listen(ctx context.Context, cfg Config) (lns [3]net.Listener, err error) {
	for i, at := range []struct{ flag, addr string }{
		{"--grpc-addr", cfg.GRPCAddr}, {"--http-addr", cfg.HTTPAddr}, {"--ops-addr", cfg.OpsAddr},
	} {
		if lns[i], err = (&net.ListenConfig{}).Listen(ctx, "tcp", at.addr); err != nil {
			for _, ln := range lns[:i] {
				err = errors.Join(err, ln.Close())
			}
			return lns, fmt.Errorf("%s %s: cannot listen there; is a hub running already? %w", at.flag, at.addr, err)
		}
	}
	return lns, nil
}
