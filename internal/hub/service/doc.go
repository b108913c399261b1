// Package service holds the hub's use cases: who may do what, the rules of content,
// the secret guard, quotas, epochs, retention, redaction, the audit log. It knows
// neither the wire nor a database.
//
// The border of authority is the team. Outside it a token learns nothing, not even
// that a name exists: an unknown project and one that is not the caller's get the
// same answer, and no store is asked before the answer is known.
package service
