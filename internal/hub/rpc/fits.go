package rpc

import (
	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
)

// The bounds of the contract that a commit must keep; TestFits compares them with it.
const (
	maxNameLen    = 300
	maxChanges    = 500
	maxMessageLen = 1024
	maxIDLen      = 128
	maxEpochLen   = 64
	maxLabelLen   = 256
	maxPathLen    = 1024
	maxContentLen = 8 << 20
	etagLen       = 64
)

// fits reports whether m plainly keeps the bounds of the contract. A yes is certain
// and spares the general check, which takes more time than any other step of a small
// commit; a no means only that the general check must tell. Lengths are counted in
// bytes here, which are never fewer than characters.
func fits(m any) bool {
	r, ok := m.(*memsvcv1.CommitChangesRequest)
	if !ok || r == nil {
		return false
	}
	if n := len(r.GetParent()); n == 0 || n > maxNameLen {
		return false
	}
	if n := len(r.GetChanges()); n == 0 || n > maxChanges {
		return false
	}
	a := r.GetAuthor()
	if len(r.GetMessage()) > maxMessageLen || len(r.GetRequestId()) > maxIDLen || len(r.GetEpoch()) > maxEpochLen ||
		len(a.GetPrincipal()) > maxLabelLen || len(a.GetMachine()) > maxLabelLen ||
		len(a.GetClient()) > maxLabelLen || len(a.GetSession()) > maxLabelLen {
		return false
	}
	for _, c := range r.GetChanges() {
		if !changeFits(c) {
			return false
		}
	}
	return true
}

func changeFits(c *memsvcv1.Change) bool {
	if n := len(c.GetPath()); n == 0 || n > maxPathLen {
		return false
	}
	switch action := c.GetAction().(type) {
	case *memsvcv1.Change_Put:
		if len(action.Put.GetContent()) > maxContentLen || len(action.Put.GetRenamedFrom()) > maxPathLen {
			return false
		}
	case *memsvcv1.Change_Delete:
	default:
		return false
	}
	condition, ok := c.GetPrecondition().GetCondition().(*memsvcv1.Precondition_Etag)
	return !ok || isETag(condition.Etag)
}

func isETag(s string) bool {
	if len(s) != etagLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
