// Package memories is one project's memories as people and coding agents see them: the
// personal ones and the team's together, added, listed, changed, removed, shared and
// checked. Commands, hooks and tools all stand on it, so that none keeps a store of its
// own. What goes to the team passes the guard at once.
package memories
