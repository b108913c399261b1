package sqlite

// SetLateLimit lets the table of revisions catch up after n commits. Call it before
// the first commit.
func (s *Store) SetLateLimit(n int) { s.trail.limit = n }
