package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "parlour"

// source is one parsed Go file.
type source struct {
	path    string // from the root of the tree, with slashes
	dir     string
	text    string
	isTest  bool // a _test.go file, or anything below tests/
	beside  bool // a _test.go file
	ast     *ast.File
	fset    *token.FileSet
	imports map[string]string // the name in this file -> import path
}

// at names a place in the file.
func (s *source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.line(n.Pos()))
}

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// in says whether the file lies in the folder or below it.
func (s *source) in(folder string) bool { return within(s.dir, folder) }

func within(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

// tree is what the laws look at: the repository, or a small sample of one.
type tree struct {
	sources []*source
	broken  []string          // files that do not parse
	texts   map[string]string // every text that is not Go
	paths   map[string]bool   // every file and folder
}

// product gives the files that end up in the bot.
func (t *tree) product() []*source {
	return slices.DeleteFunc(slices.Clone(t.sources), func(s *source) bool { return s.isTest })
}

// folders groups files by folder.
func folders(files []*source) map[string][]*source {
	groups := map[string][]*source{}
	for _, s := range files {
		groups[s.dir] = append(groups[s.dir], s)
	}
	return groups
}

// sample is a small tree in memory: path -> text.
type sample map[string]string

// grow turns texts into a tree.
func grow(texts sample) *tree {
	t := &tree{texts: map[string]string{}, paths: map[string]bool{}}
	for _, p := range sortedKeys(texts) {
		for d := p; d != "."; d = path.Dir(d) {
			t.paths[d] = true
		}
		if strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata/") {
			t.addGo(p, texts[p])
			continue
		}
		t.texts[p] = texts[p]
	}
	return t
}

func (t *tree) addGo(p, text string) {
	fset := token.NewFileSet()
	// Object resolution stays on: it tells a local name from a package's own.
	parsed, err := parser.ParseFile(fset, p, text, parser.ParseComments)
	if err != nil {
		t.broken = append(t.broken, err.Error())
		return
	}
	beside := strings.HasSuffix(p, "_test.go")
	t.sources = append(t.sources, &source{
		path: p, dir: path.Dir(p), text: text, beside: beside, isTest: beside || within(path.Dir(p), "tests"),
		ast: parsed, fset: fset, imports: importNames(parsed),
	})
}

var version = regexp.MustCompile(`^v[0-9]+$`)

func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if version.MatchString(name) {
			name = path.Base(path.Dir(p))
		}
		name, _, _ = strings.Cut(name, ".v") // gopkg.in/yaml.v3
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// imported gives the import path that an identifier stands for, or nothing
// where the name is not an import here.
func (s *source) imported(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok && id.Obj == nil {
		return s.imports[id.Name]
	}
	return ""
}

// readTree reads the repository. Pictures and databases are listed, not read.
func readTree(root string) (*tree, error) {
	texts := sample{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "state"}, rel) || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		texts[rel], err = readText(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return grow(texts), nil
}

func readText(p string) (string, error) {
	if !slices.Contains([]string{".go", ".md", ".mod", ""}, filepath.Ext(p)) {
		return "", nil
	}
	b, err := os.ReadFile(p)
	return string(b), err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
