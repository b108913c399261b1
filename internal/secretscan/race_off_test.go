//go:build !race

package secretscan

// Slow divides the work of the longest tests under the race detector; here it does not.
const Slow = 1
