//go:build linux

// Package attacks_test holds what an attacker could try against a run, one
// scenario to a test, and beside each attack the honest path that must still
// work. It uses the exported interfaces and the real host only, and it never
// takes a missing sandbox for a passed test: such tests skip and say why.
package attacks_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"parlour/tests/house"
)

// standins are the programs that this test binary can be. It is started under
// one of these names in place of an agent, or of the whole bot, so that no
// second binary is needed and nothing depends on the environment.
func standins() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		boxedName:         boxedMain,
		botName:           botMain,
		debuggerName:      debuggerMain,
		"hunter":          hunt,
		"talks-anthropic": talk,
		"talks-openai":    talk,
	}
}

// plantedValue is in the environment of every test process. No run may show it.
const plantedValue = "PARLOUR-PLANTED-ENVIRONMENT"

func TestMain(m *testing.M) {
	house.Become(filepath.Base(os.Args[0]), os.Args[1:])
	if play, ok := standins()[filepath.Base(os.Args[0])]; ok {
		os.Exit(play(os.Args[1:]))
	}
	if err := os.Setenv("PARLOUR_PLANTED", plantedValue); err != nil {
		panic(err)
	}
	// A bot of root may be in groups that open files. No run may be in them.
	if os.Getuid() == 0 {
		if err := syscall.Setgroups([]int{4, 20}); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
