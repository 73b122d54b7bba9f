package tiers

import "slices"

// name notes which user groups of a workspace have a meaning here.
func (r *Rules) name(platform Platform, workspace string, groups []string) {
	if platform != Slack {
		return
	}
	for _, id := range groups {
		if id != "" {
			r.named[workspace] = append(r.named[workspace], id)
		}
	}
}

// nameOnce drops what was named twice.
func (r *Rules) nameOnce() {
	for workspace, ids := range r.named {
		slices.Sort(ids)
		r.named[workspace] = slices.Compact(ids)
	}
}

// Groups gives the user groups of a workspace that a rule or a block names: an
// adapter need not learn of any other. The caller does not change the list.
func (r Rules) Groups(workspace string) []string { return r.named[workspace] }

// Denied gives those of them that a block names: of these everybody counts who
// may be in one.
func (r Rules) Denied(workspace string) (ids []string) {
	for _, n := range r.deniedRoles[workspace] {
		if b := &r.blocks[n]; b.Platform == Slack {
			ids = append(ids, b.Groups...)
		}
	}
	return ids
}

const groupsUnknown = "; their user groups are not known"

// groupsMatter says whether a member of the workspace might have had more by a
// user group, had the adapter learned of theirs.
func (r *Rules) groupsMatter(who *Identity, where *Place) bool {
	return who.Platform == Slack && !who.GroupsKnown && who.Member && !who.External && len(r.named[where.Workspace]) > 0
}
