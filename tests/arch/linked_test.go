package arch_test

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheBotLinksNoTestModules looks at what is really in the bot: modules
// that go.mod lists, and none that is for tests.
func TestTheBotLinksNoTestModules(t *testing.T) {
	tree, err := repository()
	require.NoError(t, err)
	require.Empty(t, foreign(linked(t), tree.texts["go.mod"]))
}

func TestForeignModulesAreFound(t *testing.T) {
	const mod = "require (\n\ta.org/b v1.0.0\n\tgithub.com/stretchr/testify v1.0.0\n)\n"
	require.Empty(t, foreign([]string{"a.org/b"}, mod))
	require.NotEmpty(t, foreign([]string{"a.org/c"}, mod))
	require.NotEmpty(t, foreign([]string{"github.com/stretchr/testify"}, mod))
}

// linked gives the modules in the bot: from the built one where the test run
// has built it, else from the go command.
func linked(t *testing.T) []string {
	t.Helper()
	var modules []string
	if bot := os.Getenv("PARLOUR_TEST_BOT"); bot != "" {
		info, err := buildinfo.ReadFile(bot)
		require.NoError(t, err)
		for _, m := range info.Deps {
			modules = append(modules, m.Path)
		}
		return modules
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+"/cmd/bot").Output()
	require.NoError(t, err, "go list failed; the bot does not build")
	modules = strings.Fields(string(out))
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == module })
}

var anyRequirement = regexp.MustCompile(`(?m)^(?:require)?[ \t]+(\S+) v`)

func foreign(linked []string, mod string) (found []string) {
	var listed []string
	for _, m := range anyRequirement.FindAllStringSubmatch(mod, -1) {
		listed = append(listed, m[1])
	}
	forTests := []string{"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/rogpeppe/go-internal", "go.uber.org/goleak"}
	for _, m := range linked {
		if !slices.Contains(listed, m) || slices.Contains(forTests, m) {
			found = append(found, m)
		}
	}
	return found
}
