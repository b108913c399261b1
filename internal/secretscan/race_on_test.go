//go:build race

package secretscan

// Slow divides the work of the longest tests: the race detector makes them about ten times as slow.
const Slow = 16
