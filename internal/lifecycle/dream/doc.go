// Package dream tidies the memories of a project between sessions (SPEC 9): duplicates
// become one, relative dates absolute, what no longer exists is marked, and the indexes
// say what is there. With a model it also consolidates what the sessions taught.
//
// A dream is one change set. It is made on a copy, checked, written to a journal, and
// only then applied, each file on the condition that it is still what the dream saw; so
// a kill at any instant loses nothing, and every dream can be undone.
//
// Nothing personal ever reaches the team: what becomes of the team's texts is made from
// the team's texts alone.
package dream
