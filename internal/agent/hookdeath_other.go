//go:build !unix

package agent

func noCore() {} // none are written unasked
