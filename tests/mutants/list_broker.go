package main

const (
	attacks  = "tests/attacks"
	contract = "tests/contract"
	configs  = "tests/config"
)

// ofTheWire are lines of the model gateway that decide what is read as a
// request, from whom, and where it goes.
func ofTheWire() []mutant {
	return []mutant{
		{"a run's token is asked for",
			"runner/broker/serve.go", `case !s.knows(r.Header):`, `case false:`,
			attacks, "TestT5ATokenWorksOnItsOwnListenerOnly"},
		{"a token stands where it belongs",
			"runner/broker/serve.go", `if bearer != (h.Get("Authorization") != "") {`, `if bearer && false {`,
			attacks, "TestT5ATokenWorksOnItsOwnListenerOnly"},
		{"a route is the target as it was written",
			"runner/broker/serve.go", `s.speech.routes[r.Method+" "+r.RequestURI]`, `s.speech.routes[r.Method+" "+r.URL.Path]`,
			attacks, "TestT5PathAndTunnelTricks"},
		{"a request names the run's own listener",
			"runner/broker/serve.go", `case r.Host != address:`, `case false:`,
			attacks, "TestT5SmuggledRequestsAreRefused"},
		{"no body is compressed",
			"runner/broker/serve.go", `case r.Header.Get("Content-Encoding") != "":`, `case false:`,
			attacks, "TestT19CompressedRequestsAreRefused"},
		{"no header stands twice",
			"runner/broker/wire.go", `if _, twice := seen[name]; twice {`, `if false {`,
			attacks, "TestT5SmuggledRequestsAreRefused"},
		{"a request has one length",
			"runner/broker/wire.go", `case hasLength && hasCoding:`, `case false:`,
			attacks, "TestT5SmuggledRequestsAreRefused"},
		{"the key follows no redirect",
			"runner/broker/upstream.go", `CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },`, ``,
			attacks, "TestT5ARedirectIsNotFollowed"},
		{"the provider's certificate is checked",
			"runner/broker/upstream.go", `&tls.Config{RootCAs: roots,`, `&tls.Config{InsecureSkipVerify: true, RootCAs: roots,`,
			attacks, "TestT5TheProvidersCertificateIsChecked"},
		{"the key leaves this machine by TLS only",
			"runner/broker/broker.go", `case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):`, `case false:`,
			attacks, "TestT5BadAddressesAndGrantsOpenNothing"},
		{"of the CLI's beta features only known ones are passed on",
			"runner/broker/upstream.go", `case slices.Contains(betas(), name) && !slices.Contains(kept, name):`, `case name != "" && !slices.Contains(kept, name):`,
			attacks, "TestT28TheProviderSeesTheGrantsIdentity"},
	}
}

// ofTheModel are lines of the model gateway that decide what a request may ask,
// what an answer may call, and what both may cost.
func ofTheModel() []mutant {
	return []mutant{
		{"a field that is not known is refused",
			"runner/broker/shape.go", `o.refuse(o.at(word(name)), "unknown field")`, `_ = name`,
			attacks, "TestT4OnlyTheAllowListLeaves"},
		{"no name stands twice in JSON",
			"runner/broker/json.go", `if seen[name] {`, `if false {`,
			attacks, "TestT4HiddenJSONIsRefused"},
		{"the provider fetches no image",
			"runner/broker/anthropic.go", `o.one("type", "base64")`, `o.one("type", "base64", "url")`,
			attacks, "TestT4OnlyTheAllowListLeaves"},
		{"nothing runs at the provider after the run",
			"runner/broker/openai.go", `if o.yes("background") {`, `if o.yes("background") && false {`,
			attacks, "TestT4OnlyTheAllowListLeaves"},
		{"an answer is as long as the grant says",
			"runner/broker/anthropic.go", `return min(asked, most)`, `return asked`,
			attacks, "TestT26ModelAndTokensAreTheGrants"},
		{"no tool outside of the set is offered",
			"runner/broker/anthropic.go", `if kind != "" && kind != "custom" || !s.granted(name) || seen[name] {`, `if kind != "" && kind != "custom" || seen[name] {`,
			attacks, "TestT18ToolsOutsideTheSetAreNotOffered"},
		{"no call outside of the set is relayed (anthropic)",
			"runner/broker/anthropic_turn.go", `if !slices.Contains(t.grant.Tools, b.Name) {`, `if !slices.Contains(t.grant.Tools, b.Name) && false {`,
			attacks, "TestT18ACallOutsideTheSetIsNotRelayed"},
		{"no call outside of the set is relayed (openai)",
			"runner/broker/openai_turn.go", `if !slices.Contains(t.grant.Tools, qualified(it.Namespace, it.Name)) {`, `if !slices.Contains(t.grant.Tools, it.Name) && false {`,
			attacks, "TestT18ACallOutsideTheSetIsNotRelayed"},
		{"a call ends the run",
			"runner/broker/relay.go", `s.ledger.violate(call)`, `_ = call`,
			attacks, "TestT18ACallOutsideTheSetIsNotRelayed"},
		{"what is in flight counts",
			"runner/broker/ledger.go", `left := l.grant.RunTokens - l.usage.Output - l.reserved`, `left := l.grant.RunTokens - l.usage.Output`,
			attacks, "TestT26ParallelRequestsShareOneBudget"},
		{"a run has so many requests",
			"runner/broker/ledger.go", `if l.requests >= l.grant.Requests {`, `if false {`,
			attacks, "TestT26EveryLimitEndsTheRun"},
		{"what an answer does not say is charged",
			"runner/broker/ledger.go", `u := Usage{Input: b.bytes, Output: b.reserved, Guessed: true}`, `u := Usage{Input: b.bytes, Guessed: true}`,
			attacks, "TestT26AHungUpCLIStillPays"},
		{"an asker is named by a hash",
			"runner/broker/broker.go", `case !hashLike.MatchString(g.Asker) || !hashLike.MatchString(g.Cache):`, `case false:`,
			attacks, "TestT5BadAddressesAndGrantsOpenNothing"},
		{"a policy without tools grants none",
			"runner/broker/broker.go", `case len(e.Tools()) == 0 && len(tools) > 0:`, `case false:`,
			attacks, "TestTheGrantComesFromThePolicy"},
	}
}
