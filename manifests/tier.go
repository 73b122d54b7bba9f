package manifests

import (
	"fmt"
	"slices"

	"parlour/runner/policy"
	"parlour/runner/spec"
	"parlour/tiers"
)

// tierFile is what one tier file says.
type tierFile struct {
	Tier
	rules   []tiers.Rule
	caps    []tiers.Cap
	blocks  []tiers.Block
	uses    []use
	expects []expectation
	listed  []item // the names in policy.runners
}

// readTier reads a tier file. The floor is what holds for limits, asking,
// reply and a whole policy that the file leaves out; it is the shipped guest's.
// Guarded by TestLeavingOutNeverWidens.
func readTier(src source, tier tiers.Tier, floor Tier, runners []string) (tierFile, Faults) {
	r, top := parse(src.file, src.text)
	if top == nil {
		return tierFile{}, r.faults
	}
	f := tierFile{Tier: floor.clone()}
	f.Tier.Tier, f.Origin = tier, src.file
	s := r.fields(item{"", top, top}, names(tierKeys())...)
	if i, ok := r.need(s, "tier", "tier: "+tier.String()); ok {
		if word, ok := r.word(i, tierWords()...); ok && word != tier.String() {
			r.fault(i.node, "tier "+word+" in the file "+tier.String()+".yaml", "tier: "+tier.String()+", or the file named "+word+".yaml")
		}
	}
	f.readPolicy(r, s.get("policy"), runners)
	f.readLimits(r, s.get("limits"))
	f.readAsking(r, s.get("asking"))
	f.readReply(r, s.get("reply"))
	f.readMatch(r, s.get("match"))
	f.readPlaces(r, s.get("places"))
	f.readBlocks(r, s.get("block"))
	f.readExpects(r, s.get("expect"))
	return f, r.faults
}

func tierWords() []string {
	words := []string{}
	for _, t := range tiers.All() {
		words = append(words, t.String())
	}
	return words
}

// readPolicy reads the policy. A policy that is there must name what decides
// most; of the rest, what is absent is what permits least.
func (f *tierFile) readPolicy(r *reader, i item, runners []string) {
	if !i.given() {
		return
	}
	p := r.fields(i, names(policyKeys())...)
	f.Wish = policy.Wish{Limits: f.Wish.Limits}
	f.readMode(r, p)
	if i, ok := r.need(p, "network", "model-only, or none"); ok {
		word, _ := r.word(i, policy.ModelOnly.String(), policy.NetworkNone.String())
		f.Wish.Network, _ = policy.ParseNetwork(word) // an unknown word is none
	}
	if i := p.get("workspace"); i.given() && (i.null() || i.node.Value != "none") {
		r.unfit(i, "none: other workspaces are not supported yet")
	}
	f.Wish.Documents = f.readDocuments(r, p.get("documents"))
	for _, w := range r.words(p.get("tools"), string(policy.Read), string(policy.Search)) {
		f.Wish.Tools = append(f.Wish.Tools, policy.Tool(w))
	}
	slices.Sort(f.Wish.Tools)
	f.readRequire(r, p.get("require"))
	f.readRunners(r, p, runners)
	f.readModels(r, p.get("model"))
}

func (f *tierFile) readMode(r *reader, p section) {
	modes := []string{policy.ReadOnly.String(), policy.WorkspaceWrite.String(), policy.DangerFullAccess.String()}
	i, ok := r.need(p, "mode", oneOf("", modes[:2]))
	if !ok {
		return
	}
	word, ok := r.word(i, modes...)
	if !ok {
		return
	}
	f.Wish.Mode, _ = policy.ParseMode(word) // word is one of modes
	if f.Wish.Mode == policy.DangerFullAccess && f.Tier.Tier != tiers.Owner {
		r.fault(i.node, "danger-full-access is for the owner only", oneOf("", modes[:2]))
	}
}

func (f *tierFile) readDocuments(r *reader, i item) []string {
	out := []string{}
	for _, e := range r.list(i) {
		name, ok := r.text(e)
		switch {
		case ok && name != policy.Handbook:
			r.fault(e.node, i.name+" holds "+show(name), policy.Handbook+": other documents are not supported yet")
		case ok && contains(out, name):
			r.fault(e.node, i.name+" holds "+name+" twice", "each name once")
		case ok:
			out = append(out, name)
		}
	}
	return out
}

// readRequire reads the clauses that the host must enforce. To require nothing
// is not possible; to leave the key out requires everything.
func (f *tierFile) readRequire(r *reader, i item) {
	f.Wish.Require = policy.Clauses()
	if !i.given() {
		return
	}
	known := []string{}
	for _, c := range policy.Clauses() {
		known = append(known, c.String())
	}
	words := r.words(i, known...)
	if i.empty() {
		r.fault(i.node, i.name+" is empty, so nothing would have to be enforced", "[filesystem, network, processes]")
		return
	}
	f.Wish.Require = nil
	for _, w := range words {
		c, _ := policy.ParseClause(w) // w is one of known
		f.Wish.Require = append(f.Wish.Require, c)
	}
}

// readRunners reads the list that is both order and ceiling. A name without a
// file would silently shorten it, so it is a fault.
func (f *tierFile) readRunners(r *reader, p section, known []string) {
	f.Runners = nil
	i, ok := r.need(p, "runners", "a list such as [docs]")
	if !ok {
		return
	}
	f.Runners, f.listed = r.words(i, known...), r.list(i)
	if i.empty() {
		r.fault(i.node, i.name+" is empty, so nobody could be answered", "a list such as [docs]")
	}
}

func (f *tierFile) readModels(r *reader, i item) {
	m := r.fields(i, append(text(modelProviders()), "output_tokens")...)
	f.Models = map[spec.Provider]string{}
	for _, p := range modelProviders() {
		i := m.get(string(p))
		if !i.given() {
			continue
		}
		// The name becomes an argument, so it may not look like a flag.
		name, ok := r.text(i)
		if ok && (len(name) > 128 || !only(name, alnum+"._:/@-") || !only(name[:1], alnum)) {
			r.fault(i.node, i.name+" is "+show(name), "a model name such as claude-haiku-4-5")
		} else if ok {
			f.Models[p] = name
		}
	}
	if i := m.get("output_tokens"); i.given() {
		f.Wish.Limits.OutputTokens, _ = r.whole(i, 1)
	}
}

const alnum = "abcdefghijklmnopqrstuvwxyz" + capital + digits

func (f *tierFile) readLimits(r *reader, i item) {
	s := r.fields(i, names(limitKeys())...)
	l := &f.Wish.Limits
	for key, into := range map[string]*int{"files": &l.Files, "processes": &l.Processes, "open_files": &l.OpenFiles, "model_requests": &l.ModelRequests} {
		if i := s.get(key); i.given() {
			*into, _ = r.whole(i, 1)
		}
	}
	for key, into := range map[string]*int64{"memory": &l.Memory, "disk": &l.Disk, "answer": &l.Answer} {
		if i := s.get(key); i.given() {
			*into, _ = r.size(i)
		}
	}
	if i := s.get("memory"); i.given() && l.Memory > 0 && l.Memory < policy.LeastMemory {
		r.fault(i.node, "memory: "+i.node.Value+" is less than a run can be started with", policy.Size(policy.LeastMemory)+" or more")
	}
	if i := s.get("wall"); i.given() {
		l.Wall, _ = r.duration(i)
	}
	if i := s.get("stall"); i.given() {
		l.Stall, _ = r.duration(i)
	}
}

func (f *tierFile) readAsking(r *reader, i item) {
	s := r.fields(i, names(askingKeys())...)
	day := r.fields(s.get("tokens_per_day"), names(dayKeys())...)
	for _, v := range []struct {
		item
		least int
		into  *int
	}{
		{s.get("per_minute"), 1, &f.Asking.PerMinute},
		{s.get("running"), 1, &f.Asking.Running},
		{s.get("waiting"), 0, &f.Asking.Waiting},
		{day.get("user"), 1, &f.Asking.TokensPerDayUser},
		{day.get("tier"), 1, &f.Asking.TokensPerDayTier},
	} {
		if v.given() {
			*v.into, _ = r.whole(v.item, v.least)
		}
	}
}

func (f *tierFile) readReply(r *reader, i item) {
	s := r.fields(i, names(replyKeys())...)
	if i := s.get("where"); i.given() {
		f.Reply.Where, _ = r.word(i, "thread")
	}
	if i := s.get("mentions"); i.given() {
		f.Reply.Mentions, _ = r.word(i, "none")
	}
	if i := s.get("unfurl"); i.given() {
		f.Reply.Unfurl = r.boolean(i)
	}
}

// undrivable gives the listed runners that are safe for the tier, but could not
// be started with its tools: each question would fail on them.
func (f *tierFile) undrivable(runners map[string]spec.Spec) (faults Faults) {
	if len(f.Wish.Tools) == 0 {
		return nil // nothing is to be said to the program about tools
	}
	key := spec.ToolKey(f.Wish.Tools)
	for _, i := range f.listed {
		s, ok := runners[i.node.Value]
		if !ok || s.BuiltIn || !s.Safe.For(f.Tier.Tier.String()).OK {
			continue
		}
		if _, ok := s.ToolArgs[key]; !ok {
			faults = append(faults, Fault{f.Origin, i.node.Line, i.node.Column,
				fmt.Sprintf("%s has no tool_args for the tools %s", s.Name, key), key + " in tool_args of " + s.Origin + ", or other tools"})
		}
	}
	return faults
}
