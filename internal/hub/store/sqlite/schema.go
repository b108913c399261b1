package sqlite

import (
	"fmt"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// applicationID marks the file as ours (SQLite's application_id): "msvc".
const applicationID = 0x6d737663

// migrations returns the steps from each schema version to the next one; the
// version of a file is its user_version. A step is never changed once released.
func migrations() []string {
	return []string{schema1, schema2, schema3, schema4}
}

// schema1 keeps the rows that every commit writes few and small: one appended to
// commits; see schema2 and schema3 for what follows later. In commits, meta stands
// before content, so that reading it does not touch the content's pages.
const schema1 = `
CREATE TABLE epochs(
	n     INTEGER PRIMARY KEY,
	epoch TEXT NOT NULL UNIQUE,
	time  INTEGER NOT NULL);
CREATE TABLE teams(team TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE projects(
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	team    TEXT NOT NULL,
	project TEXT NOT NULL,
	created BLOB NOT NULL,
	oldest  INTEGER NOT NULL,
	spilled INTEGER NOT NULL, -- request ids of commits up to this revision are in requests
	lookup  INTEGER NOT NULL, -- 1: requests holds rows of this project
	UNIQUE(team, project));
CREATE TABLE spans(
	project INTEGER NOT NULL,
	n       INTEGER NOT NULL,
	epoch   TEXT NOT NULL,
	through INTEGER NOT NULL,
	PRIMARY KEY(project, n)) WITHOUT ROWID;
CREATE TABLE commits(
	seq     INTEGER PRIMARY KEY,
	project INTEGER NOT NULL,
	rev     INTEGER NOT NULL,
	meta    BLOB NOT NULL,
	content BLOB);
CREATE UNIQUE INDEX commits_rev ON commits(project, rev);
CREATE TABLE heads(
	project INTEGER NOT NULL,
	path    TEXT NOT NULL,
	entry   BLOB NOT NULL,
	PRIMARY KEY(project, path)) WITHOUT ROWID;
CREATE TABLE requests(
	day     INTEGER NOT NULL,
	project INTEGER NOT NULL,
	key     BLOB NOT NULL,
	entry   BLOB NOT NULL,
	PRIMARY KEY(day, project, key)) WITHOUT ROWID;
CREATE TABLE redactions(
	team        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	PRIMARY KEY(team, fingerprint)) WITHOUT ROWID;
CREATE TABLE settings(
	scope   TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	doc     BLOB NOT NULL,
	PRIMARY KEY(scope, name)) WITHOUT ROWID;
CREATE TABLE tokens(
	id      TEXT PRIMARY KEY,
	hash    TEXT NOT NULL UNIQUE,
	team    TEXT NOT NULL,
	project TEXT NOT NULL,
	name    TEXT NOT NULL,
	role    TEXT NOT NULL,
	created BLOB NOT NULL,
	expires BLOB NOT NULL,
	revoked BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE audit(
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	time      BLOB NOT NULL,
	team      TEXT NOT NULL,
	principal TEXT NOT NULL,
	action    TEXT NOT NULL,
	subject   TEXT NOT NULL,
	detail    TEXT NOT NULL,
	request   TEXT NOT NULL);
CREATE INDEX audit_team ON audit(team, id);
`

// schema2 lets the table of heads fall behind: it is as of the revision headed, and
// what changed since is in the rows of commits after it.
const schema2 = `
ALTER TABLE projects ADD COLUMN headed INTEGER NOT NULL DEFAULT 0;
UPDATE projects SET headed=coalesce((SELECT max(rev) FROM commits WHERE commits.project=projects.id),0);
`

// schema3 takes the index of revisions away from commits, which wrote a page of it each:
// a table of its own falls behind. It has the rows up to the number in settled.
const schema3 = `
CREATE TABLE revs(
	project INTEGER NOT NULL,
	rev     INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	PRIMARY KEY(project, rev)) WITHOUT ROWID;
INSERT INTO revs SELECT project,rev,seq FROM commits ORDER BY project,rev;
DROP INDEX commits_rev;
CREATE TABLE settled(seq INTEGER NOT NULL);
INSERT INTO settled SELECT coalesce(max(seq),0) FROM commits;
`

// schema4 counts events that happened again; last is empty until they did.
const schema4 = `
ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
ALTER TABLE audit ADD COLUMN last BLOB NOT NULL DEFAULT x'';
`

// migrate brings the file to the newest schema, one transaction a step.
func migrate(c *conn) error {
	app, err := c.pragma("application_id")
	if err != nil {
		return err
	}
	version, err := c.pragma("user_version")
	if err != nil {
		return err
	}
	steps := migrations()
	switch {
	case app != applicationID && (app != 0 || version != 0):
		return store.Invalid("the file is another program's database; name another data directory")
	case version > int64(len(steps)):
		return store.Invalid("the database has schema %d, this program knows up to %d; run the newer memsvc that wrote it", version, len(steps))
	}
	for v := version; v < int64(len(steps)); v++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT;",
			steps[v], applicationID, v+1)
		if err := c.script(script); err != nil {
			_ = c.script("ROLLBACK")
			return fmt.Errorf("migrate to schema %d: %w", v+1, err)
		}
	}
	return nil
}
