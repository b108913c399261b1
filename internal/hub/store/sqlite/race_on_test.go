//go:build race

package sqlite_test

// raceOn: the race detector makes SQLite some thirty times slower.
const raceOn = true
