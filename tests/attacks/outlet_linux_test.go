package attacks_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/probe/mock"
	discordfake "parlour/tests/fakes/discord"
	"parlour/tests/house"
)

// Scenario: whoever may write the configuration, and not consent, has what people
// ask and the operator's key sent to a host of theirs, or has another account
// keep what is asked.
func TestT13AChangedAddressOfAProviderWaits(t *testing.T) {
	v := newVillage(t, mock.Turn{Text: "from the model"})
	thief := mock.New(mock.Turn{Text: "from the thief"})
	elsewhere := httptest.NewServer(thief)
	t.Cleanup(elsewhere.Close)
	_, end := v.serve(t)
	require.Contains(t, v.says(t, annaID, "Anna", "who am I?"), "from the model")
	end()

	honest, err := os.ReadFile(v.config)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(honest), "\n")
	lines[1] = "  anthropic: {base_url: \"" + elsewhere.URL + "\", key: {env: KEY_M}}\n"
	v.Write("config.yaml", strings.Join(lines, ""))
	log, end := v.serve(t)
	page, _ := log.Page("/readyz")
	require.Contains(t, house.Unhashed(page), "1 gains wait for your consent (bot accept-gains), first: configuration, model.anthropic: what is asked goes to "+elsewhere.URL)
	v.discord.Say(discordfake.Said{Channel: placeID, Author: discordfake.User{ID: annaID, Name: "Anna"}, Content: "<@" + chatBot + "> who am I?"})
	refused := func() bool {
		got := v.discord.Posted("")
		return len(got) > 1 && strings.HasPrefix(got[1].Content, ask.Sentence(ask.NoRunner))
	}
	require.Eventually(t, refused, time.Minute, 10*time.Millisecond, "it was not said that nobody can answer")
	require.Contains(t, v.writes(t, "who am I?"), "from the model", "the other provider's address has not changed")
	end()
	asked := v.Bot("ask", "--json", "--config", v.config, "--", "who am I?").Ended(t)
	require.Equal(t, ask.NoRunner, asked.Outcome.Cause)
	require.Contains(t, asked.Receipt.Choice.Skipped[0].Reason, "model.anthropic is new or has changed, and waits for bot accept-gains")
	require.Zero(t, thief.Asked(), "nothing was sent there")

	require.Equal(t, 0, v.Bot("accept-gains", "--config", v.config).Code)
	_, end = v.serve(t)
	require.Contains(t, v.says(t, annaID, "Anna", "who am I?"), "from the thief")
	end()

	// Going back, and another key at the same address, are changes too.
	for name, text := range map[string]string{
		"the address of before": string(honest),
		"another key":           strings.Replace(strings.Join(lines, ""), "KEY_M", "KEY_O", 1),
	} {
		v.Write("config.yaml", text)
		got := v.Bot("check", "--config", v.config)
		require.Equal(t, 0, got.Code, got.Err)
		require.Contains(t, house.Unhashed(got.Out), "1 gains wait for your consent (bot accept-gains), first: configuration, model.anthropic: ", name)
	}
}
