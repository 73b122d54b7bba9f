package arch_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
)

const (
	mostFileLines     = 600
	mostFunctionLines = 100
	mostMainLines     = 40
	mostMethods       = 20
	mostInInterface   = 3
)

func sizeLaws() []law {
	lines := func(n int) string { return strings.Repeat("\n", n) }
	methods := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "func (t *T[K]) M%d() {}\n", i)
		}
		return b.String()
	}
	return []law{
		{name: "files and functions stay short", check: checkLengths,
			bad: []sample{
				code("bridge/b.go", "package bridge\n"+lines(600)),
				code("bridge/b_test.go", "package bridge\nfunc f() {"+lines(100)+"}\n"),
				code("cmd/bot/main.go", "package main\n"+lines(40)),
			},
			good: []sample{
				code("bridge/b.go", "package bridge\n"+lines(599)),
				code("bridge/b.go", "package bridge\nfunc f() {"+lines(99)+"}\n"),
				code("cmd/bot/run.go", "package main\n"+lines(40)),
			}},
		{name: "types and interfaces stay small", check: checkMethods,
			bad: []sample{
				code("bridge/b.go", "package bridge\n"+methods(0, 21)),
				{"bridge/a.go": "package bridge\n" + methods(0, 11), "bridge/b.go": "package bridge\n" + methods(11, 21)},
				code("bridge/b.go", "package bridge\ntype I interface { A(); B(); C(); D() }"),
				code("bridge/b.go", "package bridge\ntype I interface { A(); B(); C(); error }"),
				code("bridge/b.go", "package bridge\ntype I interface {}"),
				code("bridge/b.go", "package bridge\nfunc f(interface { A(); B(); C(); D() }) {}"),
			},
			good: []sample{
				code("bridge/b.go", "package bridge\n"+methods(0, 20)),
				{"bridge/a_linux.go": "package bridge\n" + methods(0, 15), "bridge/a_darwin.go": "package bridge\n" + methods(5, 20)},
				code("bridge/b.go", "package bridge\ntype I interface { A(); B(); error }\nvar x interface{}"),
			}},
		{name: "names say what a thing is", check: checkNames,
			bad: []sample{
				code("bridge/b.go", "package bridge\ntype RunManager struct{}"),
				code("bridge/b.go", "package bridge\nfunc helperFor() {}"),
				code("bridge/b.go", "package bridge\nvar stringUtils int"),
				code("bridge/b.go", "package bridge\nconst HTTPUtil = 1"),
				code("bridge/text_util.go", "package bridge"),
				code("tests/helpers/h.go", "package helpers"),
			},
			good: []sample{code("bridge/b_test.go", "package bridge\nfunc f(t interface{ Helper() }) { t.Helper() }\nvar utilised int")}},
	}
}

func checkLengths(t *tree) (found []string) {
	for _, s := range t.sources {
		most := mostFileLines
		if s.path == "cmd/bot/main.go" {
			most = mostMainLines
		}
		if n := strings.Count(s.text, "\n"); n > most {
			found = append(found, fmt.Sprintf("%s: %d lines, at most %d", s.path, n, most))
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > mostFunctionLines {
				found = append(found, fmt.Sprintf("%s: %s has %d lines, at most %d", s.at(f), f.Name.Name, n, mostFunctionLines))
			}
		}
	}
	return found
}

func checkMethods(t *tree) (found []string) {
	for dir, files := range folders(t.sources) {
		// A method that each kind of system has in a file of its own is one.
		count, seen := map[string]int{}, map[string]bool{}
		for _, s := range files {
			for _, d := range s.ast.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil || seen[receiver(f)+"."+f.Name.Name] {
					continue
				}
				seen[receiver(f)+"."+f.Name.Name] = true
				count[receiver(f)]++
			}
			found = append(found, bigInterfaces(s)...)
		}
		for _, name := range sortedKeys(count) {
			if count[name] > mostMethods {
				found = append(found, fmt.Sprintf("%s: %s has %d methods, at most %d", dir, name, count[name], mostMethods))
			}
		}
	}
	return found
}

// receiver names the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func bigInterfaces(s *source) (found []string) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if i, ok := spec.Type.(*ast.InterfaceType); ok && len(i.Methods.List) == 0 {
				found = append(found, s.at(spec)+": an interface without methods says nothing")
			}
		}
		if i, ok := n.(*ast.InterfaceType); ok {
			if n := elements(i); n > mostInInterface {
				found = append(found, fmt.Sprintf("%s: an interface of %d methods, at most %d", s.at(i), n, mostInInterface))
			}
		}
		return true
	})
	return found
}

func elements(i *ast.InterfaceType) int {
	n := 0
	for _, m := range i.Methods.List {
		n += max(len(m.Names), 1) // an embedded interface has no name and counts once
	}
	return n
}

var (
	word  = regexp.MustCompile(`[A-Z]+(?:[a-z]+)?|[a-z]+`)
	empty = regexp.MustCompile(`^(?:[A-Z]*)(?i:managers?|helpers?|utils?|utility|utilities)$`)
)

// saysNothing says whether a name holds one of the words that name no thing.
func saysNothing(name string) bool {
	for _, w := range word.FindAllString(name, -1) {
		if empty.MatchString(w) {
			return true
		}
	}
	return false
}

func checkNames(t *tree) (found []string) {
	for _, s := range t.sources {
		for _, name := range append(declared(s), s.ast.Name.Name, strings.TrimSuffix(path.Base(s.path), ".go")) {
			if saysNothing(name) {
				found = append(found, s.path+": "+name+" does not say what it is")
			}
		}
	}
	return found
}

// declared gives the names that a file declares at package level.
func declared(s *source) (names []string) {
	for _, d := range s.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}
