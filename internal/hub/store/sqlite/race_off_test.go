//go:build !race

package sqlite_test

const raceOn = false
