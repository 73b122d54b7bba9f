package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/manifests"
	"parlour/runner/spec"
)

func loadConfig(file string) (manifests.Config, error) {
	c, err := manifests.LoadConfig(file)
	if err != nil {
		return c, err
	}
	set, err := manifests.Load("")
	if err != nil {
		return c, err
	}
	return c, c.Against(set)
}

func TestEveryBadConfigHasExactlyItsFaults(t *testing.T) {
	for _, name := range named(t, "badconfig") {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("badconfig", name))
			require.NoError(t, err)
			dir := t.TempDir()
			file := filepath.Join(dir, "config.yaml")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			_, err = loadConfig(file)
			var faults manifests.Faults
			require.ErrorAs(t, err, &faults)
			require.NotContains(t, err.Error(), "sentinel", "a secret in the wrong place is not repeated")
			require.NotContains(t, err.Error(), "user:pass")
			golden(t, filepath.Join("badconfig", strings.TrimSuffix(name, ".yaml")+".want"), strings.ReplaceAll(err.Error(), dir+"/", "")+"\n")
		})
	}
}

func TestTheExampleConfigLoadsAsItIs(t *testing.T) {
	c, err := loadConfig(filepath.Join("..", "..", "config.example.yaml"))
	require.NoError(t, err)
	require.Equal(t, "ANTHROPIC_API_KEY", c.Models[spec.Anthropic].Key.Env)
	require.Equal(t, "127.0.0.1:9464", c.Listen)
	require.Empty(t, c.Manifests, "without the key the shipped manifests hold")
	require.Empty(t, c.State)
}

func TestConfigPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("manifests: ./m\nstate: ../s\nmodel: {openai: {key: {file: key.txt}}}\n"), 0o600))
	c, err := manifests.LoadConfig(file)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "m"), c.Manifests)
	require.Equal(t, filepath.Join(filepath.Dir(dir), "s"), c.State)
	require.Equal(t, filepath.Join(dir, "key.txt"), c.Models[spec.OpenAI].Key.File)
}

func TestAMissingConfigIsAFault(t *testing.T) {
	_, err := manifests.LoadConfig(filepath.Join(t.TempDir(), "none.yaml"))
	var faults manifests.Faults
	require.ErrorAs(t, err, &faults)
}

func TestRunnersCannotReachWhatTheConfigNames(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	require.NoError(t, os.MkdirAll(filepath.Join(private, "manifests", "runners"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "keys"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tool"), 0o755))
	require.NoError(t, os.Symlink(private, filepath.Join(dir, "link")))
	config := filepath.Join(private, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(
		"model: {openai: {key: {file: "+dir+"/keys/k}}, anthropic: {key: {env: WORK_ANTHROPIC}}}\nstate: "+dir+"/link/state\n"), 0o600))
	c, err := manifests.LoadConfig(config)
	require.NoError(t, err)
	// A test's folder can lie below one that is refused anyway, so the runners
	// are judged as they are described, without reading a file.
	for name, want := range map[string]string{
		dir + "/private":       "overlaps with",
		dir + "/private/state": "overlaps with",
		dir + "/keys":          "overlaps with",
		dir + "/keys/k":        "overlaps with",
		dir:                    "overlaps with",
		dir + "/tool":          "",
	} {
		err := c.Against(manifests.SetOf(spec.Spec{Name: "x", Origin: "x.yaml", ReadOnly: []string{name}}), filepath.Join(private, "state"))
		if want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, want, name)
	}
	err = c.Against(manifests.SetOf(spec.Spec{Name: "x", Origin: "x.yaml", EnvAllow: []string{"WORK_ANTHROPIC"}}))
	require.ErrorContains(t, err, "x.yaml: env_allow holds WORK_ANTHROPIC, which holds a secret of the bot")
	require.NoError(t, c.Against(manifests.SetOf(spec.Spec{Name: "x", EnvAllow: []string{"TZ"}})))
}
