package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

func stateLaws() []law {
	const head = "package bridge\n"
	bad := func(body string) sample { return code("bridge/b.go", head+body) }
	return []law{{name: "no package keeps mutable state", check: checkState,
		bad: []sample{
			bad("var n int\nfunc f() { n = 1 }"),
			bad("var n int\nfunc f() { n++ }"),
			bad("var n []int\nfunc f() { n[0] = 1 }"),
			bad("var n struct{ a int }\nfunc f() { n.a += 1 }"),
			bad("var n = new(int)\nfunc f() { *n = 1 }"),
			bad("var n int\nfunc f() *int { return &n }"),
			bad("var n int\nfunc f() { for n = range 3 { } }"),
			bad("var n = map[int]int{}\nfunc f() { delete(n, 1) }"),
			bad("import \"slices\"\nvar n = []int{2, 1}\nfunc f() { slices.Sort(n) }"),
			bad("import \"sync\"\nvar mu sync.Mutex"),
			bad("import \"sync\"\nvar f = sync.OnceValue(func() int { return 1 })"),
			bad("import \"sync/atomic\"\nvar n = new(atomic.Int64)"),
			bad("var Names = []string{\"a\"}"),
			bad("var Names map[string]int"),
			bad("var Names = make(map[string]int)"),
			bad("import \"os\"\nfunc f() { os.Args = nil }"),
			{"bridge/a.go": head + "var n int", "bridge/b.go": head + "func f() { n = 2 }"},
			{"bridge/a.go": head + "import \"time\"\nvar now = time.Now", "bridge/b_test.go": head + "func f() { now = nil }"},
			{"tests/x/x_test.go": "package x\nimport \"parlour/bridge\"\nfunc f() { bridge.Now = nil }"},
		},
		good: []sample{
			bad("import (\"embed\"; \"errors\"; \"regexp\")\nvar ErrX = errors.New(\"x\")\nvar files embed.FS\nvar re = regexp.MustCompile(\"a\")"),
			bad("type i interface{ m() }\ntype t struct{}\nvar _ i = (*t)(nil)"),
			bad("var table = [...]string{\"a\"}\nfunc f(k int) string { return table[k] }"),
			bad("var n int\nfunc f() int { n := 2; n = 3; return n }"),
			bad("var n int\nfunc f(n []int) { n[0] = 1 }"),
			bad("import \"os\"\nfunc f(os struct{ a int }) { os.a = 1 }"),
		}}}
}

// checkState finds package-level variables that something changes, or could.
// Tests beside the code count: a hook that a test swaps is state too.
func checkState(t *tree) (found []string) {
	for _, files := range folders(t.sources) {
		globals := map[string]*ast.ValueSpec{}
		for _, s := range files {
			if !s.isTest {
				found = append(found, collect(s, globals)...)
			}
		}
		for _, s := range files {
			found = append(found, writes(s, globals)...)
		}
	}
	slices.Sort(found)
	return found
}

// collect gathers the package-level variables of a file and reports those
// whose type alone is a fault.
func collect(s *source, globals map[string]*ast.ValueSpec) (found []string) {
	for _, d := range s.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				globals[name.Name] = v
				if name.IsExported() && growable(v) {
					found = append(found, s.at(name)+": others can change the exported "+name.Name+"; make it a function")
				}
			}
			if holdsLock(s, v) {
				found = append(found, s.at(v)+": a lock, an atomic or a memo at package level is mutable state")
			}
		}
	}
	delete(globals, "_")
	return found
}

// growable says whether a variable is a map or a slice, as far as it shows.
func growable(v *ast.ValueSpec) bool {
	for _, e := range append(slices.Clone(v.Values), v.Type) {
		switch x := e.(type) {
		case *ast.CompositeLit:
			e = x.Type
		case *ast.CallExpr:
			if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "make" {
				return true
			}
		}
		if _, ok := e.(*ast.MapType); ok {
			return true
		}
		if a, ok := e.(*ast.ArrayType); ok && a.Len == nil {
			return true
		}
	}
	return false
}

func holdsLock(s *source, v *ast.ValueSpec) (holds bool) {
	ast.Inspect(v, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"sync", "sync/atomic"}, s.imported(sel.X)) {
			holds = true
		}
		_, isFunc := n.(*ast.FuncLit)
		return !isFunc
	})
	return holds
}

func writes(s *source, globals map[string]*ast.ValueSpec) (found []string) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		for _, target := range changed(s, n) {
			if name := stateName(s, target, globals); name != "" {
				found = append(found, fmt.Sprintf("%s: changes the package-level %s", s.at(n), name))
			}
		}
		return true
	})
	return found
}

// changed gives what a piece of code changes or hands out for change.
func changed(s *source, n ast.Node) []ast.Expr {
	switch x := n.(type) {
	case *ast.AssignStmt:
		return x.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{x.X}
	case *ast.RangeStmt:
		return []ast.Expr{x.Key, x.Value}
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return []ast.Expr{x.X}
		}
	case *ast.CallExpr:
		if len(x.Args) > 0 && changesItsArgument(s, x.Fun) {
			return x.Args[:1]
		}
	}
	return nil
}

func changesItsArgument(s *source, fun ast.Expr) bool {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Obj == nil && slices.Contains([]string{"delete", "clear", "copy"}, f.Name)
	case *ast.SelectorExpr:
		switch s.imported(f.X) {
		case "sort":
			return true
		case "slices", "maps":
			return slices.ContainsFunc([]string{"Sort", "Reverse", "Delete", "Compact", "Replace", "Copy"},
				func(p string) bool { return strings.HasPrefix(f.Sel.Name, p) }) && f.Sel.Name != "Sorted"
		}
	}
	return false
}

// stateName gives the package-level variable that an expression reaches into.
func stateName(s *source, e ast.Expr, globals map[string]*ast.ValueSpec) string {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if p := s.imported(x.X); p != "" {
				return foreignName(s, p, x.Sel.Name)
			}
			e = x.X
		case *ast.Ident:
			v, ok := globals[x.Name]
			if ok && (x.Obj == nil || x.Obj.Decl == v) {
				return x.Name
			}
			return ""
		default:
			return ""
		}
	}
}

// foreignName is a variable of another package. Tests may set what others
// offer for it, but nothing of ours.
func foreignName(s *source, importPath, name string) string {
	if _, isOurs := ours(importPath); s.isTest && !isOurs {
		return ""
	}
	return importPath + "." + name
}
