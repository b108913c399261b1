package postgres

import (
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// checkURL refuses a URL that is not read as it was meant: a password with characters that
// have a meaning of their own ends up in part as host, database or parameter, which
// errors tell. Nothing of such a URL is quoted.
func checkURL(text string) error {
	_, rest, ok := strings.Cut(text, "://")
	if !ok || !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return store.Invalid("database URL: want postgres://USER@HOST/DATABASE")
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	if strings.ContainsAny(rest[end:], "@#") || strings.Count(rest[end:], "?") > 1 {
		return store.Invalid("database URL: a character @, #, / or ? stands where it cannot; percent-encode the password and other values (@ is %%40, # %%23, / %%2F, ? %%3F)")
	}
	u, err := url.Parse(text)
	if err != nil {
		return errNoURL
	}
	for _, host := range strings.Split(u.Host, ",") {
		// Of a password with a colon and no @ after it, everything is host and port.
		if _, port, ok := strings.Cut(host[strings.LastIndexByte(host, ']')+1:], ":"); ok && strings.Trim(port, "0123456789") != "" {
			return errNoURL
		}
	}
	return nil
}

var errNoURL = store.Invalid("database URL: it cannot be read; want postgres://USER:PASSWORD@HOST:PORT/DATABASE, " +
	"with everything in the password but letters, digits and -._~ percent-encoded")

// urlError tells what is wrong with a URL without quoting it.
func urlError(text string, err error) error {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return errNoURL
	}
	// The error quotes the URL, its password left out if it could be found.
	why := parse.Error()
	if i := strings.LastIndex(why, "`: "); i >= 0 {
		why = why[i+len("`: "):]
	}
	if u, uerr := url.Parse(text); uerr == nil {
		if password, ok := u.User.Password(); ok && password != "" && strings.Contains(why, password) {
			return errNoURL
		}
	}
	return store.Invalid("database URL: %s", strings.Join(strings.Fields(why), " "))
}

// refresh takes the password and the TLS files in anew, for the next connection: files
// are replaced while a hub runs, the one of PGPASSFILE too. What cannot be read, as a
// file half written, leaves what was known.
func refresh(text string, c *pgx.ConnConfig) {
	now, err := pgconn.ParseConfig(text)
	if err != nil {
		return
	}
	c.Password, c.TLSConfig, c.Fallbacks = now.Password, now.TLSConfig, now.Fallbacks
}
