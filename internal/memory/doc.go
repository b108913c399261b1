// Package memory is the domain on the ground: teams, projects, paths, memories,
// commits and the rules that hold for them on hub and agent alike. Its functions
// are pure: no clock, disk, log or network, and no wire type. Everyone names this
// package; it names nobody.
package memory
