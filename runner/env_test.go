package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/spec"
)

// FuzzChildEnv: a run's environment holds the four fixed names with their fixed
// values, the names of its manifest, and nothing else of the bot's.
func FuzzChildEnv(f *testing.F) {
	f.Add("LANG PATH", "TZ", "X={token}", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY=sk-secret\nTZ=UTC\nPATH=/evil\nHOME=/root")
	f.Add("", "", "", "", "DOCKER_HOST=tcp://x\nLD_PRELOAD=/x.so")
	f.Add("HOME TMPDIR", "A A", "A=1\nA=2", "A", "A=3")
	f.Fuzz(func(t *testing.T, allow, more, fixed, folder, bot string) {
		s := spec.Spec{EnvAllow: append(strings.Fields(allow), strings.Fields(more)...), Env: map[string]string{}, ConfigEnv: map[string]string{}}
		for _, line := range strings.Split(fixed, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok && name != "" {
				s.Env[name] = value
			}
		}
		if folder != "" && !strings.Contains(folder, "=") {
			s.ConfigEnv[folder] = policy.HomeDir + "/config"
		}
		environment := map[string]string{}
		for _, line := range strings.Split(bot, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok {
				environment[name] = value
			}
		}
		got := childEnv(s, environment, strings.NewReplacer("{token}", "one-time"))
		require.NotNil(t, got)
		for _, pair := range []string{"PATH=/usr/bin:/bin", "HOME=" + policy.HomeDir, "TMPDIR=" + policy.TempDir, "LANG=C.UTF-8"} {
			require.Contains(t, got, pair)
		}
		names := map[string]bool{}
		for _, pair := range got {
			name, _, _ := strings.Cut(pair, "=")
			require.False(t, names[name], "%q stands twice", name)
			names[name] = true
			_, literal := s.Env[name]
			_, own := s.ConfigEnv[name]
			require.True(t, literal || own || slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG"}, name) || slices.Contains(s.EnvAllow, name), "%q is in no list", name)
		}
	})
}
