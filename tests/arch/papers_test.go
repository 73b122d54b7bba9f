package arch_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func paperLaws() []law {
	mod := func(requires string) string { return "module parlour\n\nrequire (\n" + requires + "\n)\n" }
	docs := func(module, reason string) string { return "| `" + module + "` | bridge | " + reason + " |\n" }
	rows := func(prefix string, n int, cell string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "| %s%d | a | b | %s |\n", prefix, i+1, cell)
		}
		return b.String()
	}
	const test = "package a\nfunc TestHere() {}"
	proof := func(file, prefix string, n int, cell string) sample {
		return sample{file: rows(prefix, n, cell), "tests/a/a_test.go": test, "Makefile": "check: test\nfuzz:\n"}
	}
	const contract, threats = "docs/contract.md", "docs/threats.md"
	return []law{
		{name: "every direct module has its reason", check: checkDependencies,
			bad: []sample{
				{"go.mod": mod("\ta.org/b v1.0.0"), "docs/dependencies.md": ""},
				{"go.mod": mod(""), "docs/dependencies.md": docs("a.org/b", "fast")},
				{"go.mod": mod("\ta.org/b v1.0.0 // indirect"), "docs/dependencies.md": docs("a.org/b", "fast")},
				{"go.mod": mod("\ta.org/b v1.0.0"), "docs/dependencies.md": docs("a.org/b", "")},
				{"go.mod": "module parlour\nrequire a.org/b v1.0.0\n", "docs/dependencies.md": ""},
				{"go.mod": mod("") + "replace a.org/b => ../b\n", "docs/dependencies.md": ""},
			},
			good: []sample{{"go.mod": mod("\ta.org/b v1.0.0\n\tc.org/d v1.0.0 // indirect"), "docs/dependencies.md": docs("a.org/b", "fast")}}},
		{name: "the map shows the import law", check: checkMap,
			bad: []sample{
				{"docs/map.md": ""},
				{"docs/map.md": mapRows(func(dir, cell string) string { return strings.Replace(cell, "`tiers`", "", 1) })},
				{"docs/map.md": mapRows(nil) + "| `shiny` | things | - |\n"},
			},
			good: []sample{{"docs/map.md": mapRows(nil)}}},
		{name: "every contract row names its proof or is open", check: checkTable(contract, "", 40),
			bad: []sample{
				proof(contract, "", 39, "open"), proof(contract, "", 40, ""), proof(contract, "", 40, "surely"),
				proof(contract, "", 40, "`TestGone`"), proof(contract, "", 40, "`tests/b TestHere`"),
				proof(contract, "", 40, "`make nothing`"), {},
			},
			good: []sample{
				proof(contract, "", 40, "open"), proof(contract, "", 40, "`TestHere/sub`; open: more"),
				proof(contract, "", 40, "`tests/a TestHere`, `bot check`, `make fuzz`"),
			}},
		{name: "every threat names its test or is open", check: checkTable(threats, "T", 42),
			bad: []sample{
				proof(threats, "T", 41, "open"), proof(threats, "T", 42, "soon"), proof(threats, "T", 42, "`TestGone`"),
			},
			good: []sample{proof(threats, "T", 42, "open"), proof(threats, "T", 42, "`tests/a TestHere`")}},
		{name: "links in the docs lead somewhere", check: checkLinks,
			bad: []sample{
				{"README.md": "see [x](docs/gone.md)"},
				{"README.md": "see [x](docs/a.md#gone)", "docs/a.md": "# Here"},
				{"docs/a.md": "![picture](../gone.png)"},
			},
			good: []sample{
				{"README.md": "see [x](docs/a.md#here-it-is), [y](https://a.org/b) and `[z](gone)`\n```\n[w](gone)\n```", "docs/a.md": "## Here it *is*!"},
				{"docs/a.md": "[up](../README.md) [here](#a)\n# A", "README.md": ""},
			}},
	}
}

// table reads the rows of all Markdown tables of a text, cell by cell.
func table(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "\x00", "|"))
		}
		rows = append(rows, cells)
	}
	return rows
}

var ticked = regexp.MustCompile("`([^`]+)`")

// quoted gives what a cell shows as code.
func quoted(cell string) (out []string) {
	for _, m := range ticked.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?[ \t]+(\S+\.\S+/\S+|\S+\.\S+) v\S+[ \t]*$`)

func checkDependencies(t *tree) (found []string) {
	direct := map[string]bool{}
	for _, m := range requirement.FindAllStringSubmatch(t.texts["go.mod"], -1) {
		direct[m[1]] = true
	}
	if strings.Contains(t.texts["go.mod"], "replace ") {
		found = append(found, "go.mod: replace works on one machine only")
	}
	for _, row := range table(t.texts["docs/dependencies.md"]) {
		for _, name := range quoted(row[0]) {
			if !direct[name] {
				found = append(found, "docs/dependencies.md: "+name+" is no direct requirement in go.mod")
			}
			if row[len(row)-1] == "" {
				found = append(found, "docs/dependencies.md: no reason for "+name)
			}
			delete(direct, name)
		}
	}
	for _, name := range sortedKeys(direct) {
		found = append(found, "go.mod: "+name+" has no reason in docs/dependencies.md")
	}
	return found
}

// mapRows writes the import law as docs/map.md shows it.
func mapRows(edit func(dir, cell string) string) string {
	var b strings.Builder
	law := mayImport()
	for _, dir := range sortedKeys(law) {
		cell := "`" + strings.Join(law[dir], "` `") + "`"
		if edit != nil {
			cell = edit(dir, cell)
		}
		fmt.Fprintf(&b, "| `%s` | something | %s |\n", dir, cell)
	}
	return b.String()
}

// checkMap compares the table for people with the one that is enforced. Rows
// for folders outside the law, such as tests, are those that hold no package.
func checkMap(t *tree) (found []string) {
	law := mayImport()
	for _, row := range table(t.texts["docs/map.md"]) {
		for _, dir := range quoted(row[0]) {
			want, known := law[dir]
			if !known && dir != "cmd/bot" && dir != "tests" {
				found = append(found, "docs/map.md: the import law does not know "+dir)
			}
			got := quoted(row[len(row)-1])
			slices.Sort(got)
			slices.Sort(want)
			if known && !slices.Equal(got, want) {
				found = append(found, fmt.Sprintf("docs/map.md: %s shows %v, the law is %v", dir, got, want))
			}
			delete(law, dir)
		}
	}
	for _, dir := range sortedKeys(law) {
		found = append(found, "docs/map.md: no row for "+dir)
	}
	return found
}

// checkTable reads a table of numbered rows whose last cell is the proof.
func checkTable(file, prefix string, rows int) func(*tree) []string {
	return func(t *tree) (found []string) {
		proofs := map[string]string{}
		for _, row := range table(t.texts[file]) {
			proofs[row[0]] = row[len(row)-1]
		}
		for i := range rows {
			n := prefix + strconv.Itoa(i+1)
			cell, ok := proofs[n]
			if !ok {
				found = append(found, file+": no row "+n)
				continue
			}
			for _, fault := range unproven(t, cell) {
				found = append(found, fmt.Sprintf("%s: row %s: %s", file, n, fault))
			}
		}
		return found
	}
}

// unproven says what is wrong with a proof: a cell says open, or names tests
// and commands that exist.
func unproven(t *tree, cell string) (faults []string) {
	proofs := quoted(cell)
	if len(proofs) == 0 && !strings.Contains(cell, "open") {
		return []string{"neither a proof nor the word open"}
	}
	for _, p := range proofs {
		switch first, rest, _ := strings.Cut(p, " "); {
		case first == "bot" || first == "go" || first == "bash":
		case first == "make":
			if !strings.Contains("\n"+t.texts["Makefile"], "\n"+rest+":") {
				faults = append(faults, "the Makefile has no target "+rest)
			}
		default:
			faults = append(faults, missingTest(t, p)...)
		}
	}
	return faults
}

// missingTest checks "TestName", "TestName/part" or "folder TestName".
func missingTest(t *tree, proof string) []string {
	dir, name, hasDir := strings.Cut(proof, " ")
	if !hasDir {
		dir, name = "", proof
	}
	name, _, _ = strings.Cut(name, "/")
	dirs := testNames(t)[name]
	if len(dirs) == 0 || hasDir && !slices.Contains(dirs, dir) {
		return []string{"there is no test " + proof}
	}
	return nil
}

var (
	fencedCode = regexp.MustCompile("(?s)```.*?```")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func checkLinks(t *tree) (found []string) {
	for _, file := range sortedKeys(t.texts) {
		if path.Ext(file) != ".md" {
			continue
		}
		text := ticked.ReplaceAllString(fencedCode.ReplaceAllString(t.texts[file], ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if fault := deadLink(t, file, m[1]); fault != "" {
				found = append(found, file+": "+fault)
			}
		}
	}
	return found
}

func deadLink(t *tree, file, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	to, anchor, _ := strings.Cut(target, "#")
	to = path.Join(path.Dir(file), to)
	if strings.HasPrefix(target, "#") {
		to = file
	}
	if !t.paths[to] {
		return "no file " + to
	}
	if anchor != "" && !slices.Contains(anchors(t.texts[to]), anchor) {
		return "no heading " + target
	}
	return ""
}

// anchors gives the names under which a page's headings can be linked.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(fencedCode.ReplaceAllString(text, ""), -1) {
		name := notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}
