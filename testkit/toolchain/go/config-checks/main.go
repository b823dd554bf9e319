// Reads files for other programs as these programs do, with their own code.
//
//	config-checks compose <directory> <env file> <profile>   prints the services of docker-compose.yml as Docker Compose reads it
//	config-checks alerts <rules> < <cases>                   prints which alerts of Prometheus fire in each case
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: config-checks compose|alerts <argument>…"))
	}
	command, args := os.Args[1], os.Args[2:]
	switch command {
	case "compose":
		if len(args) != 3 {
			fail(fmt.Errorf("usage: config-checks compose <directory> <env file> <profile>"))
		}
		fail(readCompose(args[0], args[1], args[2]))
	case "alerts":
		fail(fireAlerts(args[0]))
	default:
		fail(fmt.Errorf("no such command: %s", command))
	}
}

// Ends the process if there is an error.
func fail(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
