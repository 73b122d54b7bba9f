//go:build linux

package attacks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/tests/house"
)

// TestTheListOfRunnersAsksForFlags: what `bot runners` says of a program's flags
// is what a run would find, and where the program could not be asked it says
// that and claims nothing.
func TestTheListOfRunnersAsksForFlags(t *testing.T) {
	const needs = "help_args: [--help]\nneeds_flags: [--wanted, --other]\n"
	for name, c := range map[string]struct{ script, flags, skipped string }{
		"offers all": {"echo '--other --wanted'", "", ""},
		"lacks one":  {"echo '--wanted'", "lacks --other (needs --wanted --other)", "installed, but too old: it does not offer --other"},
		"no help": {"exit 1", "not asked for its flags: its help could not be read: failed",
			"installed, but its help could not be read: failed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := house.New(t)
			h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\n"+c.script+"\n"), Extra: needs})
			row, pick := listed(t, h.Bot("runners", "--json", "--manifests", h.Path("manifests")))
			require.Equal(t, c.flags, row.Flags)
			text := h.Bot("runners", "--manifests", h.Path("manifests"))
			require.Equal(t, 0, text.Code, text.Err)
			if c.skipped == "" {
				require.Equal(t, "standin", pick.Runner)
				require.NotContains(t, text.Out, "bin/standin, ")
				return
			}
			require.Empty(t, pick.Runner)
			require.Equal(t, c.skipped, pick.Skipped[0].Reason)
			require.Contains(t, text.Out, "bin/standin, "+c.flags)
			require.Equal(t, pick.Skipped[0].Reason, h.Ask("q").Receipt.Choice.Skipped[0].Reason, "the receipt says the same")
		})
	}
	t.Run("no sandbox", func(t *testing.T) {
		h := house.New(t)
		marker := h.Path("started")
		h.Install(house.StandIn{Name: "standin", Binary: h.Program("bin/standin", "#!/bin/sh\ntouch "+marker+"\n"), Extra: needs})
		row, pick := listed(t, inContainer(t, h, "runners", "--json", "--manifests", h.Path("manifests")))
		require.Equal(t, "not asked for its flags: this host has no sandbox to ask it in", row.Flags)
		require.Equal(t, "standin", pick.Runner, "nothing is known against it")
		require.NoFileExists(t, marker, "it is not started to be asked")
	})
}

type listedRow struct{ Runner, Flags string }

type listedPick struct {
	Tier, Runner string
	Skipped      []struct{ Reason string }
}

// listed gives the stand-in's line, and the choice for guests.
func listed(t *testing.T, got house.Result) (row listedRow, pick listedPick) {
	t.Helper()
	var all struct {
		Runners []listedRow
		Picks   []listedPick
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all), got.Err)
	for _, r := range all.Runners {
		if r.Runner == "standin" {
			row = r
		}
	}
	for _, p := range all.Picks {
		if p.Tier == "guest" {
			pick = p
		}
	}
	require.Equal(t, "standin", row.Runner)
	return row, pick
}
