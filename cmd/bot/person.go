package main

import (
	"fmt"
	"slices"
	"strings"

	"parlour/bridge"
	"parlour/manifests"
	"parlour/tiers"
)

// personFlags say by ids who sent something, and where.
type personFlags struct {
	Platform  string `required:"" enum:"discord,slack" help:"discord or slack."`
	Workspace string `placeholder:"ID" help:"Discord guild or Slack workspace; leave it out for a direct message on Discord."`
	Channel   string `required:"" placeholder:"ID" help:"Channel, thread or direct message."`
	Parent    string `placeholder:"ID" help:"The channel that a thread belongs to; the channel itself where it is no thread."`
	User      string `required:"" placeholder:"ID" help:"The person's user id."`
	Direct    bool   `help:"The channel is a direct message."`
	Bot       bool   `help:"The sender is a bot."`
	External  bool   `help:"The sender belongs to another organisation."`

	Category      string   `placeholder:"ID" help:"The Discord category that the channel, or the thread's channel, is in; none: it is in no category."`
	Role          []string `placeholder:"ID" help:"A Discord role that they hold in the guild; more by repeating the flag."`
	Group         []string `placeholder:"ID" help:"A Slack user group that they are in; more by repeating the flag."`
	GroupsUnknown bool     `help:"Slack did not tell in which user groups they are."`

	Restricted bool `help:"The sender has a guest account of the Slack workspace."`
	Shared     bool `help:"The channel is shared with another organisation (Slack Connect): nobody is more than guest there."`
	Member     bool `default:"true" negatable:"" help:"The sender is a member of the guild or workspace."`
}

// noCategory is said of a channel that is in none; no category has it as its id.
const noCategory = "none"

// check refuses what cannot be ids: a name would be decided on as if it were
// somebody.
func (f personFlags) check() error {
	platform := tiers.Platform(f.Platform)
	category := f.Category
	if category == noCategory {
		category = ""
	}
	for _, channel := range []string{f.Channel, f.Parent, category} {
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
	case platform == tiers.Discord && (len(f.Group) > 0 || f.GroupsUnknown):
		return bad("--group and --groups-unknown are of Slack; on Discord say --role")
	case len(f.Group) > 0 && f.GroupsUnknown:
		return bad("--group and --groups-unknown exclude each other")
	case platform == tiers.Discord && (f.Restricted || f.External || f.Shared):
		return bad("--restricted, --external and --shared are of Slack: Discord has no guest accounts, and no channels with other organisations")
	case !f.Member && len(f.Role)+len(f.Group) > 0:
		return bad("--no-member goes with no --role and no --group: only a member's are known")
	case f.External && len(f.Group) > 0:
		return bad("--external goes with no --group: no user group counts for people of other organisations")
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
	if f.Shared {
		most = min(most, tiers.Guest)
	}
	platform, kind := tiers.Platform(f.Platform), tiers.Person
	if f.Bot {
		kind = tiers.Bot
	}
	who := tiers.Identity{
		Platform: platform, Workspace: f.Workspace, User: f.User, Kind: kind, External: f.External, Restricted: f.Restricted,
		Member: f.Member && !f.External && f.Workspace != "", Roles: f.Role, Groups: f.Group,
		GroupsKnown: platform == tiers.Slack && !f.GroupsUnknown,
	}
	return who, tiers.Place{
		Platform: platform, Workspace: f.Workspace, Channel: f.Channel, Parent: f.Parent, Category: f.Category,
		Direct: f.Direct, Most: most,
	}
}

// said tells who and where the flags mean, with what each id is.
func (f personFlags) said() (who, where string) {
	home := "workspace"
	if f.Platform == string(tiers.Discord) {
		home = "guild"
	}
	who = "user " + f.User
	switch {
	case f.Bot:
		who += ", a bot"
	case f.External:
		who += ", of another organisation"
	case f.Workspace == "":
	case !f.Member:
		who += ", not known to be a member of " + home + " " + f.Workspace
	case f.Restricted:
		who += ", a guest account of " + home + " " + f.Workspace
	default:
		who += ", a member of " + home + " " + f.Workspace
	}
	switch {
	case len(f.Role) > 0:
		who += ", with role " + strings.Join(f.Role, ", ")
	case len(f.Group) > 0:
		who += ", in user group " + strings.Join(f.Group, ", ")
	case f.GroupsUnknown:
		who += ", user groups not known"
	}
	return who, f.saidWhere(home)
}

func (f personFlags) saidWhere(home string) string {
	where := f.Platform + ", "
	switch {
	case f.Direct:
		where += "direct message " + f.Channel
	case f.Parent != "" && f.Parent != f.Channel:
		where += "thread " + f.Channel + " of channel " + f.Parent
	default:
		where += "channel " + f.Channel
	}
	if f.Category != "" && f.Category != noCategory {
		where += ", in category " + f.Category
	}
	if f.Workspace != "" {
		where += ", in " + home + " " + f.Workspace
	}
	if f.Shared {
		where += ", shared with another organisation"
	}
	return where
}

// lowered says what allows no more here, where no line of a file does.
func (f personFlags) lowered(most tiers.Tier) (short, why string) {
	if f.Shared {
		return "a shared channel", fmt.Sprintf("nobody is more than %s in a channel that is shared with another organisation", most)
	}
	return "the place is not told whole", fmt.Sprintf("this may be a place with a limit, so nobody is more than %s until the flags tell it whole", most)
}

// untold gives the most that a place allows of which a gateway does not tell all, and
// the flags that would tell it: it may be in any category of its guild, and a thread
// of any channel. A gateway says that a channel is no thread by naming it as its own
// parent. On Slack a thread has the id of its channel.
// Guarded by tests/journeys TestAGatewayThatTellsNoCategoryGetsLess,
// TestAGatewayThatTellsNoParentGetsLess and
// TestAGatewayGetsNoMoreWhereALimitIsGoneWithoutConsent.
func untold(book bridge.Rulebook, where tiers.Place) (least tiers.Tier, flags []string) {
	most, thread := where.Most, where.Platform == tiers.Discord && where.Parent == ""
	var category, parent bool
	for _, rules := range append([]tiers.Rules{book.Rules}, book.Under...) {
		for _, limit := range rules.Caps() {
			here := limit.Platform == where.Platform && limit.Workspace == where.Workspace
			if here && (where.Category == "" && len(limit.Categories) > 0 || thread && len(limit.Channels) > 0) {
				most = min(most, limit.Tier)
				category = category || where.Category == "" && len(limit.Categories) > 0
				parent = parent || thread && len(limit.Channels) > 0
			}
		}
	}
	if category {
		flags = append(flags, "--category (the id; none where it is in no category)")
	}
	if parent {
		flags = append(flags, "--parent (the channel of the thread; "+where.Channel+" itself where it is no thread)")
	}
	return most, flags
}
