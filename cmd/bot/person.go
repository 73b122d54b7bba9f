package main

import (
	"slices"

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

	Category   string   `placeholder:"ID" help:"The Discord category that the channel, or the thread's channel, is in."`
	Role       []string `placeholder:"ID" help:"A Discord role that they hold in the guild; more by repeating the flag."`
	Group      []string `placeholder:"ID" help:"A Slack user group that they are in; more by repeating the flag."`
	Restricted bool     `help:"The sender has a guest account of the Slack workspace."`
	Member     bool     `default:"true" negatable:"" help:"The sender is a member of the guild or workspace."`
}

// check refuses what cannot be ids: a name would be decided on as if it were
// somebody.
func (f personFlags) check() error {
	platform := tiers.Platform(f.Platform)
	for _, channel := range []string{f.Channel, f.Parent, f.Category} {
		if err := manifests.CheckIDs(platform, f.Workspace, channel, f.User); err != nil {
			return badInput{err}
		}
	}
	for _, id := range slices.Concat(f.Role, f.Group) {
		if err := manifests.CheckRole(platform, id); err != nil {
			return badInput{err}
		}
	}
	switch {
	case platform == tiers.Discord && len(f.Group) > 0:
		return bad("--group is of Slack; on Discord say --role")
	case platform == tiers.Slack && (len(f.Role) > 0 || f.Category != ""):
		return bad("--role and --category are of Discord; on Slack say --group")
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
	who := tiers.Identity{
		Platform: platform, Workspace: f.Workspace, User: f.User, Kind: kind, External: f.External, Restricted: f.Restricted,
		Member: f.Member && !f.External && f.Workspace != "", Roles: f.Role, Groups: f.Group,
	}
	return who, tiers.Place{
		Platform: platform, Workspace: f.Workspace, Channel: f.Channel, Parent: f.Parent, Category: f.Category,
		Direct: f.Direct, Most: most,
	}
}

// uncategorised lowers a place of which no category was told to the least that a
// limit on a category of its guild allows: it may be in that one.
// Guarded by tests/journeys TestAGatewayThatTellsNoCategoryGetsLess.
func uncategorised(rules tiers.Rules, where tiers.Place) tiers.Tier {
	most := where.Most
	for _, limit := range rules.Caps() {
		here := limit.Platform == where.Platform && limit.Workspace == where.Workspace
		if here && where.Category == "" && len(limit.Categories) > 0 {
			most = min(most, limit.Tier)
		}
	}
	return most
}
