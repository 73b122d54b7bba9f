package discord

import (
	"context"
	"errors"

	"parlour/tiers"
)

// Look says who somebody is by now in the guild of a place: whether they are
// still a member, and by which roles. A direct message has no guild, so nothing
// of theirs there can have changed.
// Guarded by tests/contract TestDiscordARoleThatIsTakenAwayWhileAQuestionWaitsGivesNothing.
func (a *Adapter) Look(ctx context.Context, who tiers.Identity, where tiers.Place) (tiers.Identity, error) {
	if where.Workspace == "" {
		return who, nil
	}
	if !snowflake(where.Workspace) || !snowflake(who.User) {
		return tiers.Identity{}, errors.New("discord: an id that is none")
	}
	now := tiers.Identity{Platform: tiers.Discord, Workspace: where.Workspace, User: who.User, Kind: who.Kind}
	got, err := a.rest.member(ctx, where.Workspace, who.User)
	var gone *APIError
	switch {
	case errors.As(err, &gone) && (gone.Code == codeUnknownMember || gone.Code == codeUnknownUser):
		return now, nil // they have left
	case err != nil:
		return tiers.Identity{}, err
	case got.User == nil || got.User.ID != who.User || got.Roles == nil:
		return tiers.Identity{}, errors.New("discord: the answer is about nobody or about somebody else")
	case got.User.Bot || got.User.System:
		now.Kind = tiers.Bot
	}
	now.Member, now.Roles = true, rolesOf(where.Workspace, *got.Roles)
	return now, nil
}

// rolesOf gives the roles among what Discord lists. The one with the guild's own
// id is everybody's.
func rolesOf(guild string, listed []string) (roles []string) {
	for _, role := range listed {
		if snowflake(role) && role != guild {
			roles = append(roles, role)
		}
	}
	return roles
}
