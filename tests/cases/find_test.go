package cases

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func treeOf(text string) fs.FS { return fstest.MapFS{"x/x_test.go": {Data: []byte(text)}} }

// block is a function or a package's variable of tests: the cases that it names,
// and the names of its package that it uses.
type block struct {
	found []declared
	uses  []string
	test  bool
}

// declarations gives the calls of Public that a test function reaches within its
// package.
func declarations(t *testing.T, tree fs.FS) (found []declared, faults []string) {
	t.Helper()
	folders := map[string]map[string]*block{}
	require.NoError(t, fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || !strings.HasSuffix(p, "_test.go") || path.Dir(p) == "cases" {
			return err
		}
		text, err := fs.ReadFile(tree, p)
		require.NoError(t, err)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, p, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		key := path.Dir(p) + " " + file.Name.Name
		if folders[key] == nil {
			folders[key] = map[string]*block{}
		}
		for _, d := range file.Decls {
			b, bad := read(fset, d)
			faults = append(faults, bad...)
			for _, name := range namesOf(d) {
				folders[key][name] = b
			}
		}
		return nil
	}))
	for _, blocks := range folders {
		seen := map[*block]bool{}
		for _, b := range blocks {
			if b.test {
				found = append(found, reach(blocks, b, seen)...)
			}
		}
	}
	return found, faults
}

func reach(blocks map[string]*block, from *block, seen map[*block]bool) []declared {
	if from == nil || seen[from] {
		return nil
	}
	seen[from] = true
	found := from.found
	for _, name := range from.uses {
		found = append(found, reach(blocks, blocks[name], seen)...)
	}
	return found
}

func namesOf(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// read looks through one declaration.
func read(fset *token.FileSet, d ast.Decl) (*block, []string) {
	b, faults, called := &block{}, []string(nil), map[ast.Node]bool{}
	if f, ok := d.(*ast.FuncDecl); ok {
		b.test = f.Recv == nil && isTest(f.Name.Name)
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !isPublic(n.Fun) {
				return true
			}
			called[n.Fun] = true
			id, source, ok := literals(n.Args)
			at := fset.Position(n.Pos()).String()
			if !ok {
				faults = append(faults, at+": the id and the source of a case are written out")
				return true
			}
			b.found = append(b.found, declared{at, id, source})
		case *ast.SelectorExpr:
			if isPublic(n) && !called[n] {
				faults = append(faults, fset.Position(n.Pos()).String()+": a case is named where it is")
			}
		case *ast.Ident:
			b.uses = append(b.uses, n.Name)
		}
		return true
	})
	return b, faults
}

func isPublic(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Public" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "cases"
}

func literals(args []ast.Expr) (id, source string, ok bool) {
	if len(args) != 2 {
		return "", "", false
	}
	var words [2]string
	for i, a := range args {
		lit, is := a.(*ast.BasicLit)
		if !is || lit.Kind != token.STRING {
			return "", "", false
		}
		word, err := strconv.Unquote(lit.Value)
		if err != nil {
			return "", "", false
		}
		words[i] = word
	}
	return words[0], words[1], true
}

// isTest says like the go tool whether a name is one of a test.
func isTest(name string) bool {
	rest, ok := strings.CutPrefix(name, "Test")
	first, _ := utf8.DecodeRuneInString(rest)
	return ok && name != "TestMain" && (rest == "" || !unicode.IsLower(first))
}
