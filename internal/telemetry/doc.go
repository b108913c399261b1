// Package telemetry gives a program its logger, its metrics registry and its ops
// endpoint (metrics, health, profiles). It has no globals: whoever needs one of
// them is handed it by the composition root.
package telemetry
