package hub

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/client"
)

type inviteCmd struct {
	remote      `embed:""`
	projectArgs `embed:""`
	Role        string        `help:"reader or writer." enum:"reader,writer" default:"writer"`
	Name        string        `help:"Who is invited, or where; commits carry it." default:"invited" placeholder:"NAME"`
	TTL         time.Duration `name:"ttl" help:"How long the code, and what was joined with it, holds; without it, until revoked."`
	Advertise   string        `help:"Address at which the other machine reaches the hub, when it is not --hub." placeholder:"HOST:PORT"`
}

// Run makes a token and prints it in a code for memsync-agent join.
func (c *inviteCmd) Run(e *env) error {
	if err := errors.Join(checkName(c.Name), checkTTL(c.TTL)); err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	v := client.Invite{Hub: cmp.Or(c.Advertise, c.Hub), Project: key, Token: "msv_not_made_yet"}
	local := loopbackAddr(v.Hub)
	if c.Plaintext && !local {
		return usage("invite: --plaintext: no code is made for a hub beyond this machine without TLS; give the hub a certificate")
	}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return usage("--ca-file: %v", err)
		}
		v.CA = string(text)
	}
	// Tried before a token is made, so that a mistake leaves none behind.
	if _, err := v.Encode(); err != nil {
		return err
	}
	return c.with(e, func(hub *client.Client) error {
		newTeam, newProject := e.unknown(hub, key)
		token, secret, err := hub.CreateToken(e.ctx, client.NewToken{Name: c.Name, Team: key.Team, Project: key.Project, Role: c.Role, TTL: c.TTL})
		if err != nil {
			return err
		}
		v.Token = secret
		code, err := v.Encode()
		if err == nil {
			_, err = fmt.Fprintln(e.stdout, code)
		}
		if err != nil {
			return errors.Join(err, hub.RevokeToken(e.ctx, token.ID)) // nobody has it
		}
		e.tellNew(key, newTeam, newProject)
		until := "until it is revoked"
		if !token.ExpireTime.IsZero() {
			until = "until " + timeText(token.ExpireTime)
		}
		reach := ""
		if local {
			reach = "; it leads to this machine only, --advertise names an address that others reach"
		}
		e.tell(fmt.Sprintf("this code is a credential: it lets its holder join %s/%s as %s %s (memsvc token revoke %s)%s; use it with: memsync-agent join CODE --dir DIR",
			key.Team, key.Project, c.Role, until, token.ID, reach))
		return nil
	})
}

// loopbackAddr reports whether host:port is on this machine.
func loopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}
