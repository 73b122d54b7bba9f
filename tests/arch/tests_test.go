package arch_test

import (
	"go/ast"
	"strings"
)

func testLaws() []law {
	return []law{
		{name: "tests and stand-ins stay out of the product", check: checkFakes,
			bad: []sample{
				code("bridge/b.go", "package bridge\nimport _ \"parlour/tests/fakes/model\""),
				code("bridge/b.go", "package bridge\nimport _ \"testing\""),
				code("tests/fakes/model/m.go", "package model\nimport _ \"testing\"\nimport _ \"github.com/stretchr/testify/mock\""),
			},
			good: []sample{code("bridge/b_test.go", "package bridge\nimport _ \"parlour/tests/fakes/model\"")}},
		{name: "a skipped test says why", check: checkSkips,
			bad: []sample{
				code("bridge/b_test.go", "package bridge\nfunc f(t interface{ Skip() }) { t.Skip() }"),
				code("tests/attacks/a_test.go", "package a\nfunc f(t interface{ SkipNow() }) { t.SkipNow() }"),
			},
			good: []sample{code("bridge/b_test.go", "package bridge\nfunc f(t interface{ Skip(...any) }) { t.Skip(\"needs root\") }")}},
	}
}

func checkFakes(t *tree) (found []string) {
	for _, s := range t.sources {
		for _, spec := range s.ast.Imports {
			p, isOurs := ours(importPath(spec))
			switch {
			case !s.isTest && (p == "testing" || isOurs && within(p, "tests")):
				found = append(found, s.at(spec)+": the product may not import "+p)
			case !isOurs && strings.HasSuffix(p, "/mock") || strings.Contains(p, "gomock"):
				found = append(found, s.at(spec)+": stand-ins are written by hand, not by "+p)
			}
		}
	}
	return found
}

// checkSkips finds skips that would leave nothing to print.
func checkSkips(t *tree) (found []string) {
	for _, s := range t.sources {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !s.isTest {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && (sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && len(call.Args) == 0) {
				found = append(found, s.at(call)+": name what the host lacks")
			}
			return true
		})
	}
	return found
}
