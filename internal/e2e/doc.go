// Package e2e plays what happens to people: real files, a real hub in this process,
// real agents in this process or in their own. Each test is a fault that somebody
// once suffered; lower packages test the same at their level, this one that the parts
// hold together.
//
// Times are scaled down so that the suite is quick. MEMSYNC_E2E_LONG=1 adds the runs
// in real time, which CI makes.
package e2e
