package arch_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// ban keeps some names of a package in the files that may use them.
type ban struct {
	pkg   string
	names []string // nil: the import itself
	home  func(*source) bool
	why   string
}

func folder(dirs ...string) func(*source) bool {
	return func(s *source) bool { return s.isTest || slices.Contains(dirs, s.dir) }
}

func subtree(dir string) func(*source) bool {
	return func(s *source) bool { return s.isTest || s.in(dir) }
}

// walls is where the sandbox is built, and where its walls are tried.
func walls(s *source) bool { return s.isTest || s.in("runner/sandbox") || s.dir == "runner/probe" }

func nowhere(*source) bool { return false }

func onlyTests(s *source) bool { return s.isTest }

func mainFile(s *source) bool { return s.isTest || s.path == "cmd/bot/main.go" }

func processBans() []ban {
	const why = "only the runner subtree starts processes"
	raw := []string{"Syscall", "Syscall6", "Syscall9", "RawSyscall", "RawSyscall6", "SyscallNoError", "RawSyscallNoError"}
	return []ban{
		{"os/exec", nil, subtree("runner"), why},
		{"os", []string{"StartProcess"}, subtree("runner"), why},
		{"syscall", []string{"ForkExec", "StartProcess", "Exec"}, subtree("runner"), why},
		{"golang.org/x/sys/unix", []string{"Exec"}, subtree("runner"), why},
		{"syscall", raw, walls, "a raw system call passes by every other law"},
		{"golang.org/x/sys/unix", raw, walls, "a raw system call passes by every other law"},
		{"unsafe", nil, walls, "unsafe memory belongs to the sandbox and to what tries its walls"},
		{"plugin", nil, nowhere, "a plugin is code that no law has seen"},
	}
}

// environmentBans hold the readers of the environment, the open ones and those
// that read it in disguise.
func environmentBans() []ban {
	const why = "only cmd/bot reads the environment; it hands values down"
	return []ban{
		{"os", []string{"Environ", "Getenv", "LookupEnv", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv",
			"UserHomeDir", "UserConfigDir", "UserCacheDir", "TempDir"}, folder("cmd/bot"), why},
		{"syscall", []string{"Environ", "Getenv", "Setenv", "Unsetenv", "Clearenv"}, folder("cmd/bot"), why},
		{"golang.org/x/sys/unix", []string{"Environ", "Getenv", "Setenv", "Unsetenv", "Clearenv"}, folder("cmd/bot"), why},
		{"os/exec", []string{"LookPath"}, onlyTests, "LookPath reads PATH; programs are found by absolute path"},
		{"net/http", []string{"ProxyFromEnvironment", "DefaultTransport", "DefaultClient", "Get", "Head", "Post", "PostForm"},
			onlyTests, "it takes a proxy from the environment; name a transport"},
	}
}

func endingBans() []ban {
	return []ban{
		{"context", []string{"Background", "TODO"}, folder("cmd/bot"), "a context comes from the caller"},
		{"os", []string{"Exit"}, mainFile, "only main ends the process"},
		{"syscall", []string{"Exit"}, folder("runner/sandbox/entry"), "only main ends the process"},
		{"log", []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"}, nowhere, "only main ends the process"},
		{"time", []string{"Sleep"}, nowhere, "wait for the thing itself, or use a timer and the context"},
	}
}

func callLaws() []law {
	return []law{
		{name: "processes start in the runner subtree only", check: banned(processBans),
			bad: []sample{
				code("bridge/b.go", "package bridge\nimport \"os/exec\"\nvar _ = exec.Command"),
				code("cmd/bot/b.go", "package main\nimport \"os\"\nvar _ = os.StartProcess"),
				code("cmd/bot/b.go", "package main\nimport sys \"syscall\"\nvar _ = sys.ForkExec"),
				code("bridge/b.go", "package bridge\nimport \"syscall\"\nfunc f() { syscall.Exec(\"\", nil, nil) }"),
				code("bridge/b.go", "package bridge\nimport \"golang.org/x/sys/unix\"\nvar _ = unix.Exec"),
				code("runner/r.go", "package runner\nimport \"syscall\"\nvar _ = syscall.RawSyscall"),
				code("bridge/b.go", "package bridge\nimport \"unsafe\"\nvar _ unsafe.Pointer"),
				code("runner/probe/mock/m.go", "package mock\nimport \"unsafe\"\nvar _ unsafe.Pointer"),
				code("runner/r.go", "package runner\nimport _ \"plugin\""),
			},
			good: []sample{
				code("runner/sandbox/s.go", "package sandbox\nimport \"os/exec\"\nvar _ = exec.Command"),
				code("runner/probe/p.go", "package probe\nimport \"syscall\"\nvar _ = syscall.RawSyscall"),
				code("bridge/b_test.go", "package bridge\nimport \"os/exec\"\nvar _ = exec.Command"),
				code("bridge/b.go", "package bridge\nimport \"syscall\"\nvar _ = syscall.SIGTERM"),
			}},
		{name: "only cmd/bot reads the environment", check: join(banned(environmentBans), checkTemp),
			bad: []sample{
				code("runner/r.go", "package runner\nimport \"os\"\nvar _ = os.Environ()"),
				code("runner/r.go", "package runner\nimport \"os\"\nvar get = os.Getenv"),
				code("runner/r.go", "package runner\nimport \"syscall\"\nvar _, _ = syscall.Getenv(\"X\")"),
				code("runner/r.go", "package runner\nimport \"os/exec\"\nvar _, _ = exec.LookPath(\"x\")"),
				code("runner/r.go", "package runner\nimport \"os\"\nvar _, _ = os.MkdirTemp(\"\", \"x\")"),
				code("runner/broker/b.go", "package broker\nimport \"net/http\"\nvar _ = http.DefaultClient"),
			},
			good: []sample{
				code("cmd/bot/run.go", "package main\nimport \"os\"\nvar _ = os.Environ()"),
				code("runner/r.go", "package runner\nfunc f(os struct{ Getenv int }) int { return os.Getenv }"),
				code("runner/r.go", "package runner\nimport \"os\"\nfunc f(d string) { os.MkdirTemp(d, \"x\") }"),
			}},
		{name: "contexts come from the caller, main ends the process, nothing sleeps", check: banned(endingBans),
			bad: []sample{
				code("bridge/b.go", "package bridge\nimport \"context\"\nvar _ = context.Background()"),
				code("bridge/b.go", "package bridge\nimport \"context\"\nvar _ = context.TODO()"),
				code("cmd/bot/run.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }"),
				code("runner/sandbox/s.go", "package sandbox\nimport \"syscall\"\nfunc f() { syscall.Exit(1) }"),
				code("cmd/bot/run.go", "package main\nimport \"log\"\nfunc f() { log.Fatal() }"),
				code("bridge/b_test.go", "package bridge\nimport \"time\"\nfunc f() { time.Sleep(1) }"),
				code("tests/fakes/f.go", "package fakes\nimport \"time\"\nfunc f() { time.Sleep(1) }"),
			},
			good: []sample{
				code("cmd/bot/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }"),
				code("runner/sandbox/entry/e.go", "package entry\nimport \"syscall\"\nfunc f() { syscall.Exit(1) }"),
			}},
		{name: "only the sandbox's entry runs before main", check: checkInit,
			bad: []sample{
				code("bridge/b.go", "package bridge\nfunc init() {}"),
				code("tests/fakes/f.go", "package fakes\nfunc init() {}"),
				code("runner/sandbox/s.go", "package sandbox\n//go:linkname args os.runtime_args\nfunc args() []string"),
			},
			good: []sample{
				code("runner/sandbox/entry/e.go", "package entry\nfunc init() {}"),
				code("bridge/b.go", "package bridge\ntype t struct{}\nfunc (t) init() {}"),
			}},
		{name: "panics live in functions that say so", check: checkPanic,
			bad: []sample{
				code("bridge/b.go", "package bridge\nfunc f() { panic(1) }"),
				code("bridge/b.go", "package bridge\nvar f = func() { panic(1) }"),
			},
			good: []sample{code("bridge/b.go", "package bridge\nfunc mustF() { panic(1) }\nfunc g(panic func()) { panic() }")}},
	}
}

func join(checks ...func(*tree) []string) func(*tree) []string {
	return func(t *tree) (found []string) {
		for _, check := range checks {
			found = append(found, check(t)...)
		}
		return found
	}
}

func banned(bans func() []ban) func(*tree) []string {
	return func(t *tree) (found []string) {
		for _, s := range t.sources {
			for _, b := range bans() {
				if !b.home(s) {
					found = append(found, b.find(s)...)
				}
			}
		}
		return found
	}
}

func (b ban) find(s *source) (found []string) {
	if b.names == nil {
		for _, spec := range s.ast.Imports {
			if importPath(spec) == b.pkg {
				found = append(found, fmt.Sprintf("%s: imports %s: %s", s.at(spec), b.pkg, b.why))
			}
		}
		return found
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && s.imported(sel.X) == b.pkg && slices.Contains(b.names, sel.Sel.Name) {
			found = append(found, fmt.Sprintf("%s: %s.%s: %s", s.at(sel), b.pkg, sel.Sel.Name, b.why))
		}
		return true
	})
	return found
}

// checkTemp finds temporary files in a folder that the environment names.
func checkTemp(t *tree) (found []string) {
	for _, s := range t.product() {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || s.dir == "cmd/bot" {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || s.imported(sel.X) != "os" || !slices.Contains([]string{"MkdirTemp", "CreateTemp"}, sel.Sel.Name) {
				return true
			}
			if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Value == strconv.Quote("") {
				found = append(found, s.at(call)+": the folder \"\" is TMPDIR: only cmd/bot reads the environment")
			}
			return true
		})
	}
	return found
}

func checkInit(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.beside || s.dir == "runner/sandbox/entry" {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				found = append(found, s.at(f)+": init runs before anything could be checked")
			}
		}
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname") {
					found = append(found, s.at(c)+": go:linkname reaches into other packages")
				}
			}
		}
	}
	return found
}

func checkPanic(t *tree) (found []string) {
	for _, s := range t.product() {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && saysItPanics(f.Name.Name) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && id.Obj == nil {
					found = append(found, s.at(call)+": return an error, or name the function must… or impossible…")
				}
				return true
			})
		}
	}
	return found
}

func saysItPanics(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "must") || strings.HasPrefix(lower, "impossible") || lower == "bug"
}
