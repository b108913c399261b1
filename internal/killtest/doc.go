// Package killtest runs the two programs as processes and is cruel to them: kill -9 at
// any moment, full and read-only disks, lines that go dead, damaged state. Its tests
// hold what no test within one process can: that what was acknowledged is there after
// the process is not, and that a start goes on without a hand.
//
// The tests run on Linux, where the faults can be made; mounts need root. A machine
// where mounts are not permitted skips the tests that need them and says so, unless CI
// is "true" and the user is root.
//
// MEMSVC_KILL_ROUNDS (default 1) says how long: the kills of each test are about four a round,
// and from 2 on the tests run that wait for real time-outs.
package killtest
