package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// SQLSTATEs and their classes that decide what becomes of a failure; see appendix A
// of PostgreSQL's manual.
const (
	codeUniqueViolation   = "23505"
	codeBadText           = "22021" // character_not_in_repertoire: a NUL, or no UTF-8
	codeDuplicatePrepared = "42P05"
	codeUnknownPrepared   = "26000"
	codeUndefinedTable    = "42P01"
	codeUndefinedSchema   = "3F000"
	codeUndefinedColumn   = "42703"
	codeDenied            = "42501" // insufficient_privilege
	codeUndefinedObject   = "42704" // at connecting: a setting that the server does not know
	codeUnknownDatabase   = "3D000"
	codeReadOnly          = "25006"
	codeLockTimeout       = "55P03"
	codeQueueFull         = "54000" // of NOTIFY
	codeMoved             = "22012" // division by zero, which nothing but queueMark provokes
)

// errLost is a transaction whose COMMIT was not answered: it may have happened.
var errLost = errors.New("the connection was lost while committing; the outcome is not known")

// sqlState returns the SQLSTATE of err, or "".
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// passing reports whether err may be gone at the next try: the connection broke, the
// server restarts, is out of connections, gave up a wait, or chose us as the victim.
func passing(err error) bool {
	if err == nil {
		return false
	}
	if code := sqlState(err); code != "" {
		switch code[:2] {
		case "08", "40", "53", "55", "57", "58", "25":
			return true
		}
		return lostStatement(err)
	}
	var netErr net.Error
	return errors.Is(err, errMoved) || errors.As(err, &netErr) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err) || isConnect(err)
}

// setUp reports whether err is about how the database is set up: an operator changes it,
// and clients that try again meet it mended.
func setUp(err error) bool {
	switch code := sqlState(err); code {
	case codeUndefinedTable, codeUndefinedSchema, codeUndefinedColumn, codeDenied, codeUndefinedObject, codeUnknownDatabase, codeMoved:
		return true
	default:
		return strings.HasPrefix(code, "28")
	}
}

// lostStatement reports whether a pooler gave the connection to another server process,
// which does not know our prepared statements, or knows others'.
func lostStatement(err error) bool {
	code := sqlState(err)
	return code == codeUnknownPrepared || code == codeDuplicatePrepared
}

// fatal reports whether err is the server's last word on the connection.
func fatal(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC")
}

func isConnect(err error) bool {
	var c *pgconn.ConnectError
	return errors.As(err, &c)
}

// cause says what the database answered without what a statement held: messages of
// some classes quote values.
func cause(err error) error {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &pg):
		switch pg.Code {
		case codeUnknownPrepared, codeDuplicatePrepared:
			return fmt.Errorf("SQLSTATE %s: a pooler in transaction mode loses prepared statements; add default_query_exec_mode=cache_describe to the database URL", pg.Code)
		case codeUndefinedTable, codeUndefinedSchema, codeUndefinedColumn:
			return fmt.Errorf("SQLSTATE %s: the schema is not there; run memsvc migrate", pg.Code)
		case codeMoved:
			return fmt.Errorf("the tables are not those of before (SQLSTATE %s)", pg.Code)
		case codeReadOnly:
			return fmt.Errorf("it %s (SQLSTATE %s)", readOnlyText, pg.Code)
		case codeDenied:
			return fmt.Errorf("%s (SQLSTATE %s); give the user the right: GRANT CREATE ON DATABASE, or a schema of its own: CREATE SCHEMA memsvc AUTHORIZATION", pg.Message, pg.Code)
		case codeUndefinedObject:
			return fmt.Errorf("%s (SQLSTATE %s); correct the URL, the part after ?", pg.Message, pg.Code)
		case codeUnknownDatabase:
			return fmt.Errorf("%s (SQLSTATE %s); make it, or correct the URL", pg.Message, pg.Code)
		case codeQueueFull:
			return fmt.Errorf("%s (SQLSTATE %s)", pg.Message, pg.Code)
		}
		switch pg.Code[:2] {
		case "28":
			return fmt.Errorf("%s (SQLSTATE %s); look at user and password, in the URL, PGPASSWORD or the file of PGPASSFILE", pg.Message, pg.Code)
		case "08", "25", "40", "53", "55", "57", "58":
			return fmt.Errorf("%s (SQLSTATE %s)", pg.Message, pg.Code)
		}
		return fmt.Errorf("SQLSTATE %s", pg.Code)
	case errors.As(err, &connect):
		return errors.New(eachOnce(connect.Error()))
	}
	return err
}

// eachOnce makes one line of what failed to connect: a host with several addresses fails
// once for each, and each with TLS and without, in the same words.
func eachOnce(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !slices.ContainsFunc(parts, func(told string) bool { return strings.HasSuffix(told, line) }) {
			parts = append(parts, line)
		}
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return parts[0] + " " + strings.Join(parts[1:], "; ")
}

// public turns a failure of the database into what callers get: an ErrUnavailable if
// trying again can help, an ErrInternal if not. Answers stay as they are.
func (s *Store) public(ctx context.Context, op string, err error) error {
	var known *memory.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, store.ErrClosed):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case sqlState(err) == codeBadText:
		return store.Invalid("%s: a text holds a NUL character or is not UTF-8; take it out", op)
	case passing(err), setUp(err), errors.Is(err, errLost):
		return store.Unavailable(op, cause(err))
	}
	return &memory.Error{Reason: memory.ReasonInternal, Message: fmt.Sprintf("%s: %v", op, cause(err))}
}

// openError is public for whoever starts a program: it names the place, and asks for
// another try only if one can help.
func (s *Store) openError(err error) error {
	var known *memory.Error
	if errors.As(err, &known) {
		return err
	}
	op := "open the database " + s.place()
	if setUp(err) {
		return &memory.Error{Reason: memory.ReasonUnavailable, Message: fmt.Sprintf("%s: %v", op, cause(err))}
	}
	return s.public(context.Background(), op, err)
}

// place names database, hosts and ports.
func (s *Store) place() string {
	cfg := s.pool.Config().ConnConfig
	at := []string{net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))}
	for _, f := range cfg.Fallbacks {
		if a := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(at, a) {
			at = append(at, a)
		}
	}
	return fmt.Sprintf("%q at %s", cfg.Database, strings.Join(at, ", "))
}
