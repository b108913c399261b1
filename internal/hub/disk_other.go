//go:build !linux && !darwin

package hub

// diskSpace says that the system does not tell.
func diskSpace(string) (size, free float64, ok bool) { return 0, 0, false }
