package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parlour/manifests"
	"parlour/runner/spec"
	"parlour/tiers"
)

// The names of what the configuration sends a secret to, and with it what people
// ask: they are those of its keys.
func outletOfModel(p spec.Provider) string        { return "model." + string(p) }
func outletOfChat(platform tiers.Platform) string { return string(platform) }

// outlets says for each service that the configuration names to which address a
// secret goes, and which one. Whether a variable is set makes no difference.
func (c config) outlets() map[string]string {
	all := map[string]string{}
	add := func(name, address string, refs ...manifests.Ref) {
		var from []string
		for _, ref := range refs {
			switch {
			case ref.Env != "":
				from = append(from, "the variable "+ref.Env)
			case ref.File != "":
				from = append(from, "the file "+ref.File)
			}
		}
		if len(from) == 0 {
			return // without a secret nothing goes there
		}
		if address == "" {
			address = "the service's own address"
		}
		all[name] = address + " with " + strings.Join(from, " and ")
	}
	for provider, model := range c.Models {
		add(outletOfModel(provider), model.BaseURL, model.Key)
	}
	add(outletOfChat(tiers.Discord), c.Discord.API, c.Discord.Token)
	add(outletOfChat(tiers.Slack), c.Slack.API, c.Slack.AppToken, c.Slack.BotToken)
	return all
}

// closed gives the outlets that are new or have changed since the operator's
// consent, each with what waits. They are not used.
// Guarded by tests/journeys TestT13AChangedAddressOfAProviderWaits and
// TestT13AChangedAddressOfAPlatformWaits.
func (c consent) closed(outlets map[string]string) map[string]string {
	s, err := c.past() // of what cannot be read nothing counts, and all waits
	if err == nil && s.first {
		return nil
	}
	yes, _ := c.accepted()
	all := map[string]string{}
	for name, to := range outlets {
		was, known := s.Outlets[name]
		switch {
		case yes.Outlets[name] == to, known && was == to:
		case known:
			all[name] = fmt.Sprintf("configuration, %s: what is asked goes to %s, was %s", name, to, was)
		default:
			all[name] = fmt.Sprintf("configuration, %s: what is asked goes to %s, which is new", name, to)
		}
	}
	return all
}

// outletGains lists what of the configuration waits.
func outletGains(closed map[string]string) (gains []string) {
	for _, name := range slices.Sorted(maps.Keys(closed)) {
		gains = append(gains, closed[name])
	}
	return gains
}

// shut says of each provider that may not be used why.
func shut(closed map[string]string) map[spec.Provider]string {
	all := map[spec.Provider]string{}
	for name := range closed {
		if provider, ok := strings.CutPrefix(name, outletOfModel("")); ok {
			all[spec.Provider(provider)] = "the configuration's " + name + " is new or has changed, and waits for bot accept-gains"
		}
	}
	return all
}
