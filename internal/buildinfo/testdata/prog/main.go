// Command prog prints its build.
package main

import (
	"fmt"

	"github.com/memsvc/memsvc/internal/buildinfo"
)

func main() { fmt.Println(buildinfo.Read()) }
