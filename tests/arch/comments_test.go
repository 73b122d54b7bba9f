package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
)

func commentLaws() []law {
	const good = "// Package bridge carries questions. It never decides.\npackage bridge\n"
	return []law{
		{name: "every package says once what it is and what it refuses", check: checkPackageComments,
			bad: []sample{
				code("bridge/b.go", "package bridge"),
				code("bridge/b.go", "// Package bridge does not decide.\npackage bridge"),
				code("bridge/b.go", "// Package bridge carries questions. It is good.\npackage bridge"),
				{"bridge/a.go": good, "bridge/b.go": good},
				code("tests/attacks/a_test.go", "package attacks_test"),
			},
			good: []sample{
				{"bridge/a.go": good, "bridge/b.go": "package bridge", "bridge/b_test.go": "package bridge"},
				code("tests/attacks/a_test.go", "// Package attacks_test attacks.\npackage attacks_test"),
			}},
		{name: "every exported name is documented", check: checkExported,
			bad: []sample{
				code("bridge/b.go", "package bridge\nfunc F() {}"),
				code("bridge/b.go", "package bridge\ntype T struct{}"),
				code("bridge/b.go", "package bridge\nvar V = 1"),
				code("bridge/b.go", "package bridge\nconst (\nC = 1\n)"),
				code("bridge/b.go", "package bridge\n// T is.\ntype T struct{}\nfunc (t *T) M() {}"),
			},
			good: []sample{
				code("bridge/b.go", "package bridge\n// The parts.\nconst (\nA = 1\nB = 2\n)\nconst (\nC = 1 // the third\n)"),
				code("bridge/b.go", "package bridge\ntype t struct{}\nfunc (t) M() {}\nfunc f() {}"),
				code("bridge/b_test.go", "package bridge\nfunc F() {}"),
			}},
		{name: "comments cite tests that exist", check: checkCited,
			bad: []sample{code("bridge/b.go", "package bridge\n// f is safe.\n// Guarded by tests/attacks TestGone.\nfunc f() {}")},
			good: []sample{{"bridge/b.go": "package bridge\n// Guarded by TestHere.\nfunc f() {}",
				"tests/attacks/a_test.go": "package a\nimport \"testing\"\nfunc TestHere(t *testing.T) {}"}}},
	}
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?](\s|$)`)
	refusal     = regexp.MustCompile(`(?i)\b(not|no|never|nothing|nobody|none|neither|nor|refuses?|cannot|only|without)\b`)
)

func checkPackageComments(t *tree) (found []string) {
	all := folders(t.sources)
	for dir, files := range folders(t.product()) {
		text, n := packageComment(files)
		switch {
		case n != 1:
			found = append(found, fmt.Sprintf("%s: the package comment stands in %d files, not one", dir, n))
		case len(sentenceEnd.FindAllString(text, -1)) < 2 || !refusal.MatchString(text):
			found = append(found, dir+": the package comment must also say what the package does not do")
		}
		delete(all, dir)
	}
	for dir, files := range all {
		if _, n := packageComment(files); n != 1 {
			found = append(found, fmt.Sprintf("%s: the package comment stands in %d files, not one", dir, n))
		}
	}
	return found
}

func packageComment(files []*source) (text string, n int) {
	for _, s := range files {
		if s.ast.Doc != nil {
			text, n = s.ast.Doc.Text(), n+1
		}
	}
	return text, n
}

func checkExported(t *tree) (found []string) {
	for _, s := range t.product() {
		for _, d := range s.ast.Decls {
			for _, name := range undocumented(d) {
				found = append(found, s.at(name)+": "+name.Name+" has no comment")
			}
		}
	}
	return found
}

func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
			return exported(d.Name)
		}
	case *ast.GenDecl:
		if d.Doc == nil && d.Tok != token.IMPORT {
			return undocumentedSpecs(d.Specs)
		}
	}
	return nil
}

func undocumentedSpecs(specs []ast.Spec) (names []*ast.Ident) {
	for _, spec := range specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Doc == nil && spec.Comment == nil {
				names = append(names, exported(spec.Name)...)
			}
		case *ast.ValueSpec:
			if spec.Doc == nil && spec.Comment == nil {
				names = append(names, exported(spec.Names...)...)
			}
		}
	}
	return names
}

func exported(names ...*ast.Ident) (out []*ast.Ident) {
	for _, n := range names {
		if n.IsExported() {
			out = append(out, n)
		}
	}
	return out
}

var citedTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)

// checkCited finds comments of the product that lean on a test that is gone.
func checkCited(t *tree) (found []string) {
	tests := testNames(t)
	for _, s := range t.product() {
		for _, group := range s.ast.Comments {
			for _, name := range citedTest.FindAllString(group.Text(), -1) {
				if len(tests[name]) == 0 {
					found = append(found, s.at(group)+": there is no "+name)
				}
			}
		}
	}
	return found
}

// testNames gives the folders in which each test, fuzz target and benchmark
// stands.
func testNames(t *tree) map[string][]string {
	names := map[string][]string{}
	for _, s := range t.sources {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && s.beside && f.Recv == nil && citedTest.MatchString(f.Name.Name) {
				names[f.Name.Name] = append(names[f.Name.Name], s.dir)
			}
		}
	}
	return names
}
