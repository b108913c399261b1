package hub

import "time"

// Config is how a hub runs. The tags are its flags; see package config.
type Config struct {
	DataDir     string   `help:"Directory of the embedded store; made if need be." default:"${data_dir}"`
	DatabaseURL string   `name:"database-url" secret:"" help:"PostgreSQL database that several hubs share, postgres://USER@HOST/DATABASE, instead of the embedded store." placeholder:"URL"`
	Migrate     bool     `help:"With --database-url: bring the schema up to date at the start."`
	GRPCAddr    string   `name:"grpc-addr" help:"Address of the gRPC API." default:"127.0.0.1:7420"`
	HTTPAddr    string   `name:"http-addr" help:"Address of the REST API." default:"127.0.0.1:7421"`
	OpsAddr     string   `name:"ops-addr" help:"Address of metrics, health and profiles; keep it private." default:"127.0.0.1:7422"`
	TLSCert     string   `name:"tls-cert" help:"Certificate chain in PEM; taken in anew when it changes." placeholder:"FILE"`
	TLSKey      string   `name:"tls-key" help:"Key of the certificate." placeholder:"FILE"`
	TLSClientCA string   `name:"tls-client-ca" help:"Authorities whose client certificates are required." placeholder:"FILE"`
	AllowHosts  []string `name:"allow-host" help:"Names by which REST and ops may be called, beside addresses and, on loopback, localhost; without any, a port beyond loopback may be called by every name." placeholder:"NAME"`
	Insecure    bool     `help:"Listen beyond loopback without TLS, because something else protects the connection; lets the ops port, which never has TLS, listen there too."`

	OTLPEndpoint string `name:"otlp-endpoint" help:"Where to send traces by OTLP over gRPC, http:// or https://; else where OTEL_EXPORTER_OTLP_ENDPOINT says; by default nowhere." empty:"" placeholder:"URL"`
	IdentityFile string `help:"Whose JWTs (OIDC) and client certificates count, and for what, in YAML; taken in anew when it changes." placeholder:"FILE"`

	LogFormat string `help:"text or json." default:"text" enum:"text,json"`
	LogLevel  string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`

	Retention       time.Duration `help:"How long replaced versions are kept, where a team does not say otherwise." default:"2160h"`
	AuditRetention  time.Duration `help:"How long events of the audit log are kept." default:"9600h"`
	MaxProjectFiles int64         `help:"Living memories of a project, where a team does not say otherwise." default:"10000"`
	MaxProjectBytes int64         `help:"Bytes of a project's living memories, where a team does not say otherwise." default:"268435456"`
	MaxConnections  int           `help:"gRPC connections at a time." default:"10000"`
	MaxPerPeer      int           `name:"max-connections-per-peer" help:"Connections of one address at a time and port; 0 is no bound of its own. Raise it where a load balancer stands in front: all come from its address then." default:"2500"`
	MaxWatchers     int           `help:"Watches at a time." default:"50000"`
	Rate            float64       `help:"Calls a second and token; 0 is no bound." default:"500"`
	RateBurst       int           `help:"Calls of a token at once before the rate holds." default:"1000"`
	DrainTimeout    time.Duration `help:"How long calls under way may take at shutdown." default:"10s"`
}
