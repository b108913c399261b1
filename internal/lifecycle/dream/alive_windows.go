package dream

import (
	"errors"

	"golang.org/x/sys/windows"
)

const stillActive = 259

// alive reports whether a process exists, whoever's it is.
func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer func() { _ = windows.CloseHandle(h) }() // only asked
	var code uint32
	return windows.GetExitCodeProcess(h, &code) != nil || code == stillActive
}
