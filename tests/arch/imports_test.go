package arch_test

import (
	"fmt"
	"slices"
	"strings"
)

// mayImport is the import law: a package of ours may import only these of
// ours. cmd/bot may import all of them, and a package that is not listed may
// not exist. docs/map.md shows the same table to people.
func mayImport() map[string][]string {
	adapter := []string{"bridge", "bridge/ask", "tiers", "guardrail/secret"}
	return map[string][]string{
		"tiers":                {},
		"runner/policy":        {},
		"guardrail/secret":     {},
		"bridge/ask":           {"tiers", "runner/policy"},
		"runner/spec":          {"runner/policy"},
		"manifests":            {"tiers", "runner/policy", "runner/spec"},
		"guardrail":            {"tiers", "runner/policy", "bridge/ask", "guardrail/secret"},
		"runner/sandbox/entry": {},
		"runner/sandbox":       {"runner/policy", "runner/sandbox/entry"},
		"runner/broker":        {"runner/policy", "guardrail/secret"},
		"runner/docs":          {},
		"runner/probe":         {"runner", "runner/policy", "runner/sandbox", "runner/broker", "runner/probe/mock"},
		"runner/probe/mock":    {},
		"runner":               {"bridge/ask", "runner/policy", "runner/spec", "runner/sandbox", "runner/broker", "runner/docs"},
		"bridge/journal":       {"bridge/ask", "tiers"},
		"bridge":               {"tiers", "bridge/ask", "runner/policy", "guardrail", "bridge/journal"},
		"bridge/discord":       adapter,
		"bridge/slack":         adapter,
		"bridge/local":         adapter,
		"docs":                 {},
	}
}

// modules is where each third-party module may be imported. A name that ends
// in .go is a file name in any package. An empty list: test files only.
func modules() map[string][]string {
	return map[string][]string{
		"gopkg.in/yaml.v3":                    {"manifests", "cmd/bot"},
		"modernc.org/sqlite":                  {"bridge/journal", "runner/docs"},
		"github.com/pressly/goose/v3":         {"bridge/journal"},
		"github.com/oklog/ulid/v2":            {"bridge/journal"},
		"github.com/alecthomas/kong":          {"cmd/bot"},
		"golang.org/x/sys":                    {"runner/sandbox", "runner/probe", "bridge/journal", "cmd/bot"},
		"github.com/fsnotify/fsnotify":        {"manifests"},
		"github.com/prometheus/client_golang": {"metrics.go"},
		"github.com/bwmarrin/discordgo":       {"bridge/discord"},
		"github.com/slack-go/slack":           {"bridge/slack"},
		"github.com/gorilla/websocket":        {"tests/fakes/discord", "tests/fakes/slack", "bridge/discord", "bridge/slack"},
		"golang.org/x/sync":                   {"cmd/bot"},
		"github.com/stretchr/testify/require": {},
		"github.com/rogpeppe/go-internal":     {},
		"go.uber.org/goleak":                  {},
		"pgregory.net/rapid":                  {},
	}
}

func importLaws() []law {
	return []law{
		{name: "every Go file parses", check: func(t *tree) []string { return t.broken },
			bad: []sample{code("broken.go", "package x\nfunc {")}},
		{name: "packages import only what the import law allows", check: checkOurs,
			bad: []sample{
				code("bridge/b.go", "package bridge\nimport _ \"parlour/runner\""),
				code("tiers/t.go", "package tiers\nimport _ \"parlour/runner/policy\""),
				code("runner/r.go", "package runner\nimport _ \"parlour/runner/probe\""),
				code("cmd/bot/m.go", "package main\nimport _ \"parlour/tests/fakes/agent\""),
				code("bridge/b_linux.go", "//go:build linux\n\npackage bridge\nimport _ \"parlour/bridge/local\""),
				code("shiny/s.go", "package shiny"),
			},
			good: []sample{
				code("bridge/b.go", "package bridge\nimport _ \"parlour/tiers\""),
				code("cmd/bot/m.go", "package main\nimport _ \"parlour/runner/probe\""),
				code("tests/journeys/j_test.go", "package journeys_test\nimport _ \"parlour/runner\""),
			}},
		{name: "third parties stay where they belong", check: checkModules,
			bad: []sample{
				code("guardrail/g.go", "package guardrail\nimport _ \"gopkg.in/yaml.v3\""),
				code("runner/r.go", "package runner\nimport _ \"golang.org/x/sys/unix\""),
				code("bridge/limits.go", "package bridge\nimport _ \"github.com/prometheus/client_golang/prometheus\""),
				code("bridge/b.go", "package bridge\nimport _ \"github.com/stretchr/testify/require\""),
				code("bridge/b.go", "package bridge\nimport _ \"example.com/unheard/of\""),
				code("bridge/b.go", "package bridge\nimport \"C\""),
				code("bridge/b.go", "package bridge\nimport . \"fmt\""),
				code("bridge/b_test.go", "package bridge\nimport _ \"github.com/stretchr/testify/assert\""),
				code("bridge/b_test.go", "package bridge\nimport _ \"go.uber.org/mock/gomock\""),
				code("tests/fakes/f.go", "package fakes\nimport _ \"github.com/stretchr/testify/mock\""),
				code("bridge/journal/j.go", "package journal\nimport _ \"modernc.org/sqlitex\""),
			},
			good: []sample{
				code("manifests/m.go", "package manifests\nimport _ \"gopkg.in/yaml.v3\""),
				code("bridge/metrics.go", "package bridge\nimport _ \"github.com/prometheus/client_golang/prometheus\""),
				code("bridge/b_test.go", "package bridge\nimport _ \"github.com/stretchr/testify/require\""),
			}},
		{name: "the sandbox's entry imports syscall and unsafe only", check: checkEntry,
			bad: []sample{code("runner/sandbox/entry/e.go", "package entry\nimport _ \"os\"")},
			good: []sample{
				code("runner/sandbox/entry/e.go", "package entry\nimport (\n_ \"syscall\"\n_ \"unsafe\"\n)"),
				code("runner/sandbox/entry/e_test.go", "package entry\nimport _ \"testing\""),
			}},
	}
}

func ours(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func checkOurs(t *tree) []string {
	var found []string
	allowed := mayImport()
	for _, s := range t.product() {
		list, known := allowed[s.dir]
		if !known && s.dir != "cmd/bot" {
			found = append(found, s.path+": the import law does not know this folder")
			continue
		}
		for _, spec := range s.ast.Imports {
			p, isOurs := ours(importPath(spec))
			if s.dir == "cmd/bot" {
				_, known = allowed[p]
			} else {
				known = slices.Contains(list, p)
			}
			if isOurs && !known {
				found = append(found, fmt.Sprintf("%s: %s may not import %s", s.at(spec), s.dir, p))
			}
		}
	}
	return found
}

// thirdParty says whether an import comes from outside Go's own library.
func thirdParty(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	_, isOurs := ours(p)
	return !isOurs && strings.Contains(first, ".")
}

func checkModules(t *tree) []string {
	var found []string
	for _, s := range t.sources {
		for _, spec := range s.ast.Imports {
			p := importPath(spec)
			switch {
			case p == "C":
				found = append(found, s.at(spec)+": cgo: the bot is one static binary")
			case spec.Name != nil && spec.Name.Name == ".":
				found = append(found, s.at(spec)+": a dot import hides where names come from")
			case thirdParty(p) && !moduleAllowed(s, p):
				found = append(found, fmt.Sprintf("%s: %s may not import %s", s.at(spec), s.dir, p))
			}
		}
	}
	return found
}

func moduleAllowed(s *source, p string) bool {
	for m, homes := range modules() {
		if within(p, m) {
			base := s.path[strings.LastIndex(s.path, "/")+1:]
			return s.isTest || slices.Contains(homes, s.dir) || slices.Contains(homes, base)
		}
	}
	return false
}

func checkEntry(t *tree) []string {
	var found []string
	for _, s := range t.product() {
		for _, spec := range s.ast.Imports {
			if s.dir == "runner/sandbox/entry" && importPath(spec) != "syscall" && importPath(spec) != "unsafe" {
				found = append(found, s.at(spec)+": runs before every other package, so it may not import "+importPath(spec))
			}
		}
	}
	return found
}
