package watcher

// How is the way a root is watched.
type How string

// The ways. Starting is before the first look at the root.
const (
	Starting How = "starting"
	Events   How = "events"
	Polling  How = "polling"
	Missing  How = "missing"
)

// Mode says how a root is watched now and, unless by events, why, with what to do
// where something can be done.
type Mode struct {
	How    How
	Reason string
}

// String returns the way, and the reason in brackets.
func (m Mode) String() string {
	if m.Reason == "" {
		return string(m.How)
	}
	return string(m.How) + " (" + m.Reason + ")"
}
