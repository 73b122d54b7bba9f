// Command bot answers questions from a sandbox.
//
// It is the only place that reads the environment and the arguments, and that
// ends the process. It wires the packages together and decides nothing
// that they decide.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args, os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
