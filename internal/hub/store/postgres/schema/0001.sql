-- A step is never changed once released; later ones come beside it. The schema's
-- name is put in for "memsvc." by the program.

-- Paths and names compare by bytes, as Go compares them, whatever the database's locale.
-- A time is kept to the nanosecond: timestamptz holds microseconds, *_ns the rest.

CREATE TABLE memsvc.epochs(
	n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	epoch text NOT NULL UNIQUE,
	time  timestamptz NOT NULL);

CREATE TABLE memsvc.teams(team text COLLATE "C" PRIMARY KEY);

-- One row is a project's head. It is locked first by whoever writes to the project, so
-- that revisions are in commit order. Room is left on the pages, so that its updates
-- touch no index.
CREATE TABLE memsvc.projects(
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	team       text COLLATE "C" NOT NULL,
	project    text COLLATE "C" NOT NULL,
	created    timestamptz NOT NULL,
	created_ns smallint NOT NULL,
	head       bigint NOT NULL DEFAULT 0,
	head_id    text NOT NULL DEFAULT '',
	oldest     bigint NOT NULL DEFAULT 1,
	files      bigint NOT NULL DEFAULT 0,
	bytes      bigint NOT NULL DEFAULT 0,
	UNIQUE(team, project)) WITH (fillfactor=50);

CREATE TABLE memsvc.spans(
	project bigint NOT NULL,
	n       int NOT NULL,
	epoch   text NOT NULL,
	through bigint NOT NULL,
	PRIMARY KEY(project, n));

-- xid tells replicas what came since they looked: whatever was not yet visible to a
-- snapshot has a transaction id at or above the snapshot's xmin.
CREATE TABLE memsvc.commits(
	project   bigint NOT NULL,
	rev       bigint NOT NULL,
	id        text NOT NULL,
	time      timestamptz NOT NULL,
	time_ns   smallint NOT NULL,
	bytes     bigint NOT NULL, -- of the contents of its versions
	xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
	principal text NOT NULL,
	machine   text NOT NULL,
	client    text NOT NULL,
	session   text NOT NULL,
	message   text NOT NULL,
	PRIMARY KEY(project, rev));
CREATE INDEX commits_xid ON memsvc.commits(xid);

-- etag NULL: a tombstone. kind: 1 put, 2 delete, 3 redact.
CREATE TABLE memsvc.versions(
	project      bigint NOT NULL,
	rev          bigint NOT NULL,
	n            int NOT NULL, -- place in the commit
	path         text COLLATE "C" NOT NULL,
	kind         smallint NOT NULL,
	etag         bytea,
	prev_etag    bytea,
	size         bigint NOT NULL,
	mod          timestamptz NOT NULL,
	mod_ns       smallint NOT NULL,
	renamed_from text NOT NULL,
	content      bytea,
	PRIMARY KEY(project, rev, n));
CREATE INDEX versions_path ON memsvc.versions(project, path, rev);

-- The newest version of each path, tombstones too.
CREATE TABLE memsvc.heads(
	project bigint NOT NULL,
	path    text COLLATE "C" NOT NULL,
	rev     bigint NOT NULL,
	etag    bytea NOT NULL, -- of a tombstone: the deleted text's
	size    bigint NOT NULL,
	deleted boolean NOT NULL,
	PRIMARY KEY(project, path)) WITH (fillfactor=80);

-- result is set once the commit is compacted: a late retry still gets its answer.
CREATE TABLE memsvc.requests(
	project bigint NOT NULL,
	key     bytea NOT NULL,
	digest  bytea NOT NULL,
	at      timestamptz NOT NULL,
	at_ns   smallint NOT NULL,
	created boolean NOT NULL,
	rev     bigint NOT NULL,
	id      text NOT NULL,
	result  jsonb,
	PRIMARY KEY(project, key));

CREATE TABLE memsvc.redactions(
	team        text COLLATE "C" NOT NULL,
	fingerprint text COLLATE "C" NOT NULL,
	PRIMARY KEY(team, fingerprint));

CREATE TABLE memsvc.settings(
	scope   text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	version bigint NOT NULL,
	doc     bytea NOT NULL,
	PRIMARY KEY(scope, name));

CREATE TABLE memsvc.tokens(
	id         text COLLATE "C" PRIMARY KEY,
	hash       text COLLATE "C" NOT NULL UNIQUE,
	team       text COLLATE "C" NOT NULL,
	project    text NOT NULL,
	name       text NOT NULL,
	role       text NOT NULL,
	created    timestamptz NOT NULL,
	created_ns smallint NOT NULL,
	expires    timestamptz NOT NULL,
	expires_ns smallint NOT NULL,
	revoked    timestamptz NOT NULL,
	revoked_ns smallint NOT NULL);

CREATE TABLE memsvc.audit(
	id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	time      timestamptz NOT NULL,
	time_ns   smallint NOT NULL,
	team      text COLLATE "C" NOT NULL,
	principal text NOT NULL,
	action    text NOT NULL,
	subject   text NOT NULL,
	detail    text NOT NULL,
	request   text NOT NULL);
CREATE INDEX audit_team ON memsvc.audit(team, id);

-- What replicas are to look at besides commits: projects made and purged.
CREATE TABLE memsvc.events(
	xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
	at      timestamptz NOT NULL DEFAULT now(),
	team    text NOT NULL,
	project text NOT NULL);
CREATE INDEX events_xid ON memsvc.events(xid);

-- Work that one replica does at a time, by the database's clock.
CREATE TABLE memsvc.leases(
	name   text PRIMARY KEY,
	holder text NOT NULL,
	until  timestamptz NOT NULL);

-- What each replica tells the others of itself, as one document.
CREATE TABLE memsvc.replicas(
	replica text PRIMARY KEY,
	at      timestamptz NOT NULL,
	doc     bytea NOT NULL);
