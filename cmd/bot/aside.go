package main

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// aside makes work that the bot can do without: what panics in it is logged, and
// the bot goes on answering. Guarded by TestAside.
func aside(log *slog.Logger, what string, work func()) func() error {
	return func() error {
		defer func() {
			if broken := recover(); broken != nil {
				log.Error(what, "err", fmt.Sprint("panic: ", broken), "stack", string(debug.Stack()))
			}
		}()
		work()
		return nil
	}
}
