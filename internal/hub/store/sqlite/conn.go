package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
)

// conn is one connection, used by one goroutine at a time, spoken to without
// database/sql: its locks, conversions and goroutines cost more than the statement.
type conn struct {
	raw   driver.Conn
	stmts [numStatements]driver.Stmt // prepared on first use
	args  []driver.NamedValue        // reused by every call
	dest  []driver.Value             // reused by every row
}

// dbError is a failure of the database, as opposed to an answer to a request.
type dbError struct {
	op  string
	err error
}

func (e *dbError) Error() string { return e.op + ": " + e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// open opens the file with the pragmas given, e.g. "synchronous(FULL)".
func open(file string, params url.Values, pragmas ...string) (*conn, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if params == nil {
		params = url.Values{}
	}
	params["_pragma"] = append([]string{"busy_timeout(10000)"}, pragmas...)
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: params.Encode()}).String()
	raw, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, &dbError{"open", err}
	}
	return &conn{raw: raw}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// script runs SQL text without arguments: one statement or many.
func (c *conn) script(sql string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	if err != nil {
		return &dbError{"script", err}
	}
	return nil
}

// scriptContext is script, interrupted when ctx ends.
func (c *conn) scriptContext(ctx context.Context, sql string, args ...any) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(ctx, sql, c.bind(args))
	if err != nil {
		return &dbError{"script", err}
	}
	return nil
}

// pragma returns the integer that a pragma answers.
func (c *conn) pragma(name string) (int64, error) {
	v, err := c.pragmaValue(name)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, &dbError{name, fmt.Errorf("pragma answered %T, want a number", v)}
	}
	return n, nil
}

// pragmaValue returns the first column of the first row that a pragma answers.
func (c *conn) pragmaValue(name string) (driver.Value, error) {
	rows, err := c.raw.(driver.QueryerContext).QueryContext(context.Background(), "PRAGMA "+name, nil)
	if err != nil {
		return nil, &dbError{name, err}
	}
	defer func() { _ = rows.Close() }()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		return nil, &dbError{name, err}
	}
	return dest[0], nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

func (c *conn) prepared(id statement) (driver.Stmt, error) {
	if c.stmts[id] == nil {
		s, err := c.raw.Prepare(id.sql())
		if err != nil {
			return nil, &dbError{id.sql(), err}
		}
		c.stmts[id] = s
	}
	return c.stmts[id], nil
}

// exec runs a statement. Arguments are int64, string, []byte or nil.
func (c *conn) exec(id statement, args ...any) error {
	s, err := c.prepared(id)
	if err != nil {
		return err
	}
	if _, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args)); err != nil {
		return &dbError{id.sql(), err}
	}
	return nil
}

// errStop, returned by a row function, ends query without error.
var errStop = errors.New("stop")

// query runs a statement and calls row with each row; it may keep blobs and
// strings, but not the slice. It must not use c.
func (c *conn) query(id statement, row func(v []driver.Value) error, args ...any) error {
	s, err := c.prepared(id)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return &dbError{id.sql(), err}
	}
	defer func() { _ = rows.Close() }()
	n := len(rows.Columns())
	if cap(c.dest) < n {
		c.dest = make([]driver.Value, n)
	}
	for {
		dest := c.dest[:n]
		if err := rows.Next(dest); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return &dbError{id.sql(), err}
		}
		if err := row(dest); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
}

// blob and text read a column that may be NULL.
func blob(v driver.Value) []byte {
	b, _ := v.([]byte)
	return b
}

func text(v driver.Value) string {
	switch t := v.(type) {
	case string:
		return t
	case []byte:
		return string(t)
	}
	return ""
}
