package hub

import (
	"errors"
	"time"
)

// Config is how a hub runs. The tags are its flags; see package config.
type Config struct {
	DataDir     string `help:"Directory of the embedded store; made if need be." default:"./memsvc-data"`
	GRPCAddr    string `name:"grpc-addr" help:"Address of the gRPC API." default:"127.0.0.1:7420"`
	HTTPAddr    string `name:"http-addr" help:"Address of the REST API." default:"127.0.0.1:7421"`
	OpsAddr     string `name:"ops-addr" help:"Address of metrics, health and profiles; keep it private." default:"127.0.0.1:7422"`
	TLSCert     string `name:"tls-cert" help:"Certificate chain in PEM; taken in anew when it changes." placeholder:"FILE"`
	TLSKey      string `name:"tls-key" help:"Key of the certificate." placeholder:"FILE"`
	TLSClientCA string `name:"tls-client-ca" help:"Authorities whose client certificates are required." placeholder:"FILE"`
	Insecure    bool   `help:"Listen beyond loopback without TLS, because something else protects the connection; lets the ops port, which never has TLS, listen there too."`

	LogFormat string `help:"text or json." default:"text" enum:"text,json"`
	LogLevel  string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`

	Retention       time.Duration `help:"How long replaced versions are kept, where a team does not say otherwise." default:"2160h"`
	MaxProjectFiles int64         `help:"Living memories of a project, where a team does not say otherwise." default:"10000"`
	MaxProjectBytes int64         `help:"Bytes of a project's living memories, where a team does not say otherwise." default:"268435456"`
	MaxConnections  int           `help:"gRPC connections at a time." default:"10000"`
	MaxWatchers     int           `help:"Watches at a time." default:"50000"`
	Rate            float64       `help:"Calls a second and token; negative is no bound." default:"500"`
	RateBurst       int           `help:"Calls of a token at once before the rate holds." default:"1000"`
	DrainTimeout    time.Duration `help:"How long calls under way may take at shutdown." default:"10s"`
}

// Check finds every setting that cannot work. It touches no file.
func (c Config) Check() error {
	var errs []error
	bad := func(text string) { errs = append(errs, errors.New(text)) }
	if c.DataDir == "" {
		bad("--data-dir: name a directory")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		bad("--tls-cert and --tls-key go together")
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		bad("--tls-client-ca needs --tls-cert and --tls-key")
	}
	var apis, ops error // why an address beyond loopback is refused; nil: it is not
	if !c.Insecure {
		ops = errOpsNotLoopback
		if c.TLSCert == "" {
			apis = errNotLoopback
		}
	}
	errs = append(errs, checkAddr("--grpc-addr", c.GRPCAddr, apis), checkAddr("--http-addr", c.HTTPAddr, apis), checkAddr("--ops-addr", c.OpsAddr, ops))
	if c.Retention < time.Hour {
		bad("--retention: at least 1h")
	}
	if c.MaxProjectFiles < 1 || c.MaxProjectBytes < 1 || c.MaxConnections < 1 || c.MaxWatchers < 1 || c.RateBurst < 1 {
		bad("bounds must be positive")
	}
	if c.DrainTimeout < 0 {
		bad("--drain-timeout: cannot be negative")
	}
	return errors.Join(errs...)
}
