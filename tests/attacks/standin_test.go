package attacks_test

import (
	"os"
	"path/filepath"
	"testing"
)

// standins are the programs that this test binary can be. It is started under
// one of these names in place of an agent, or of the whole bot, so that no
// second binary is needed and nothing depends on the environment.
func standins() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		boxedName:   boxedMain,
		botName:     botMain,
		"hunter":    hunt,
		"container": container,
	}
}

// plantedValue is in the environment of every test process. No run may show it.
const plantedValue = "PARLOUR-PLANTED-ENVIRONMENT"

func TestMain(m *testing.M) {
	if play, ok := standins()[filepath.Base(os.Args[0])]; ok {
		os.Exit(play(os.Args[1:]))
	}
	if err := os.Setenv("PARLOUR_PLANTED", plantedValue); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
