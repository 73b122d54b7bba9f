package main

import (
	"parlour/manifests"
	"parlour/tiers"
)

// personFlags say by ids who sent something, and where.
type personFlags struct {
	Platform  string `required:"" enum:"discord,slack" help:"discord or slack."`
	Workspace string `placeholder:"ID" help:"Discord guild or Slack workspace; leave it out for a direct message on Discord."`
	Channel   string `required:"" placeholder:"ID" help:"Channel, thread or direct message."`
	Parent    string `placeholder:"ID" help:"The channel that a thread belongs to."`
	User      string `required:"" placeholder:"ID" help:"The person's user id."`
	Direct    bool   `help:"The channel is a direct message."`
	Bot       bool   `help:"The sender is a bot."`
	External  bool   `help:"The sender belongs to another organisation."`
}

// check refuses what cannot be ids: a name would be decided on as if it were
// somebody.
func (f personFlags) check() error {
	platform := tiers.Platform(f.Platform)
	for _, channel := range []string{f.Channel, f.Parent} {
		if err := manifests.CheckIDs(platform, f.Workspace, channel, f.User); err != nil {
			return badInput{err}
		}
	}
	switch {
	case platform == tiers.Slack && f.Workspace == "":
		return bad("--workspace is missing: on Slack an id belongs to a workspace")
	case platform == tiers.Discord && f.Workspace == "" && !f.Direct:
		return bad("--workspace is missing; for a direct message say --direct")
	}
	return nil
}

// ids gives the person and the place, which lets in at most the tier most.
func (f personFlags) ids(most tiers.Tier) (tiers.Identity, tiers.Place) {
	platform, kind := tiers.Platform(f.Platform), tiers.Person
	if f.Bot {
		kind = tiers.Bot
	}
	return tiers.Identity{Platform: platform, Workspace: f.Workspace, User: f.User, Kind: kind, External: f.External},
		tiers.Place{Platform: platform, Workspace: f.Workspace, Channel: f.Channel, Parent: f.Parent, Direct: f.Direct, Most: most}
}
