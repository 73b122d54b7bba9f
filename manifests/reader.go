package manifests

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// reader reads one file and gathers every fault that it meets. It reads nodes
// itself instead of decoding into structs, since only so can it tell all faults
// at once, each with its line, and know a missing value from an empty one.
type reader struct {
	file   string
	lines  []string
	faults Faults
	// The last line that was looked at by characters, as the parser counts
	// columns: a list of many ids may stand in a single line.
	wide   []rune
	wideAt int
}

// item is one value: its name for messages, the node that a fault about it
// points at, and the node that holds it. An absent value has no node.
type item struct {
	name string // dotted, such as policy.mode
	at   *yaml.Node
	node *yaml.Node
}

func (i item) given() bool { return i.node != nil }

func (i item) null() bool { return i.node == nil || isNull(i.node) }

// empty says whether a list or mapping holds nothing.
func (i item) empty() bool {
	return i.null() || (i.node.Kind != yaml.ScalarNode && len(i.node.Content) == 0)
}

// section is a mapping with its known keys.
type section struct {
	item
	values map[string]item
}

// get gives the value of a key; an absent one has no node.
func (s section) get(key string) item {
	if i, ok := s.values[key]; ok {
		return i
	}
	return item{name: join(s.name, key), at: s.at}
}

func join(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}

// need gives the value of a key that may not be missing.
func (r *reader) need(s section, key, right string) (item, bool) {
	i := s.get(key)
	if !i.given() && (s.null() || s.node.Kind == yaml.MappingNode) { // else it is no mapping, which has been said
		r.fault(s.at, i.name+" is missing", right)
	}
	return i, i.given()
}

// unfit reports a value of the wrong form. An alias has been reported before.
func (r *reader) unfit(i item, right string) {
	n := i.node
	switch {
	case n == nil:
		r.fault(i.at, i.name+" is missing", right)
	case n.Kind == yaml.AliasNode:
	case isNull(n):
		r.fault(i.at, i.name+" has no value", right)
	case n.Kind == yaml.MappingNode:
		r.fault(n, i.name+" is a mapping", right)
	case n.Kind == yaml.SequenceNode:
		r.fault(n, i.name+" is a list", right)
	default:
		r.fault(n, i.name+" is "+show(n.Value), right)
	}
}

// fields reads a mapping. A key that is not known is a fault; a mapping with
// nothing in it is read as an empty one.
func (r *reader) fields(i item, known ...string) section {
	s := section{i, map[string]item{}}
	for _, v := range r.pairs(i) {
		key := v.at.Value
		switch {
		case contains(known, key):
			s.values[key] = v
		case v.at.Tag == "!!merge": // reported by structure
		default:
			unknownKey(r, i, v.at, known)
		}
	}
	return s
}

func unknownKey(r *reader, parent item, key *yaml.Node, known []string) {
	what := "unknown key " + show(key.Value)
	if parent.name != "" {
		what += " in " + parent.name
	}
	if codes := invisible(key.Value); codes != "" {
		what += " (it holds " + codes + ")"
	}
	r.fault(key, what, oneOf(key.Value, known))
}

// pairs reads a mapping with any keys, each once, in the order of the file.
func (r *reader) pairs(i item) []item {
	if i.null() {
		return nil
	}
	if i.node.Kind != yaml.MappingNode {
		r.unfit(i, "a mapping: keys with values, such as {key: value}")
		return nil
	}
	var out []item
	seen := map[string]bool{}
	for k := 0; k+1 < len(i.node.Content); k += 2 {
		key, value := i.node.Content[k], i.node.Content[k+1]
		if key.Kind == yaml.ScalarNode && !seen[key.Value] {
			seen[key.Value] = true
			out = append(out, item{join(i.name, key.Value), key, value})
		}
	}
	return out
}

// list reads a sequence. Nothing at all is an empty list.
func (r *reader) list(i item) []item {
	if i.null() {
		return nil
	}
	if i.node.Kind != yaml.SequenceNode {
		right := "a list, such as [a, b]"
		if i.node.Kind == yaml.ScalarNode && strings.Contains(i.node.Value, ",") {
			right = "a list: each entry on its own, such as [a, b]"
		}
		r.unfit(i, right)
		return nil
	}
	var out []item
	for _, n := range i.node.Content {
		out = append(out, item{i.name, n, n})
	}
	return out
}

// mappings reads a list whose entries are mappings.
func (r *reader) mappings(i item) []item {
	var out []item
	for _, e := range r.list(i) {
		if e.node.Kind == yaml.MappingNode {
			out = append(out, e)
		} else {
			r.unfit(e, "a mapping: keys with values, such as {key: value}")
		}
	}
	return out
}

// text reads a value that is one piece of text.
func (r *reader) text(i item) (string, bool) {
	if i.null() || i.node.Kind != yaml.ScalarNode {
		r.unfit(i, "text")
		return "", false
	}
	if strings.ContainsRune(i.node.Value, 0) {
		r.fault(i.node, i.name+" holds a NUL", "text without it")
		return "", false
	}
	return i.node.Value, true
}

// texts reads a list of texts.
func (r *reader) texts(i item) []string {
	out := []string{}
	for _, e := range r.list(i) {
		if s, ok := r.text(e); ok {
			out = append(out, s)
		}
	}
	return out
}

// word reads one of a few known words.
func (r *reader) word(i item, known ...string) (string, bool) {
	if i.null() || i.node.Kind != yaml.ScalarNode {
		r.unfit(i, oneOf("", known))
		return "", false
	}
	if !contains(known, i.node.Value) {
		what := i.name + " is " + show(i.node.Value)
		if codes := invisible(i.node.Value); codes != "" {
			what += " (it holds " + codes + ")"
		}
		r.fault(i.node, what, oneOf(i.node.Value, known))
		return "", false
	}
	return i.node.Value, true
}

// words reads a list of known words, each once.
func (r *reader) words(i item, known ...string) []string {
	out := []string{}
	for _, e := range r.list(i) {
		w, ok := r.word(e, known...)
		if ok && contains(out, w) {
			r.fault(e.node, fmt.Sprintf("%s holds %s twice", i.name, w), "each word once")
		} else if ok {
			out = append(out, w)
		}
	}
	return out
}

// boolean reads true or false, and nothing that YAML also takes for them.
func (r *reader) boolean(i item) bool {
	n := i.node
	if !i.given() || (n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "false") {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "true" {
		return true
	}
	r.unfit(i, "true or false, without quotes")
	return false
}
