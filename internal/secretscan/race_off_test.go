//go:build !race

package secretscan_test

// slow divides the work of the longest tests under the race detector; here it does not.
const slow = 1
