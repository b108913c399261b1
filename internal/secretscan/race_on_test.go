//go:build race

package secretscan_test

// slow divides the work of the longest tests: the race detector makes them about ten times as slow.
const slow = 16
