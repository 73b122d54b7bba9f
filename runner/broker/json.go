package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// What a JSON text may hold at most.
const (
	maxDepth  = 48
	maxNodes  = 200_000
	maxNumber = 32 // characters
)

// kind is the kind of a JSON value.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// node is one JSON value. Objects keep the order of their names, each of which
// occurs once.
type node struct {
	kind  kind
	yes   bool
	text  string // of a text or a number
	names []string
	items []*node
}

// The ways in which a JSON text is refused.
var (
	errNotJSON  = errors.New("not one JSON value in UTF-8")
	errTwice    = errors.New("a name that occurs twice in one object")
	errTooDeep  = errors.New("nested too deeply")
	errTooMany  = errors.New("too many values")
	errNoNumber = errors.New("a number out of range")
)

// parseJSON reads exactly one JSON value. It is stricter than encoding/json: no
// name twice, no invalid UTF-8, bounded depth and number of values.
func parseJSON(data []byte) (*node, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errNotJSON
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return n, nil
}

type parser struct {
	dec   *json.Decoder
	nodes int
}

func (p *parser) value(depth int) (*node, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, errNotJSON
	}
	if p.nodes++; p.nodes > maxNodes {
		return nil, errTooMany
	}
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.list(depth)
	case string:
		return &node{kind: kindText, text: t}, nil
	case json.Number:
		return number(t.String())
	case bool:
		return &node{kind: kindBool, yes: t}, nil
	}
	return &node{kind: kindNull}, nil
}

func number(text string) (*node, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || len(text) > maxNumber {
		return nil, errNoNumber
	}
	return &node{kind: kindNumber, text: text}, nil
}

func (p *parser) object(depth int) (*node, error) {
	n := &node{kind: kindObject}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errNotJSON
		}
		if seen[name] {
			return nil, errTwice
		}
		seen[name] = true
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.names, n.items = append(n.names, name), append(n.items, v)
	}
	return n, p.end()
}

func (p *parser) list(depth int) (*node, error) {
	n := &node{kind: kindList}
	for p.dec.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	return n, p.end()
}

func (p *parser) end() error {
	if _, err := p.dec.Token(); err != nil {
		return errNotJSON
	}
	return nil
}

// MarshalJSON writes the value anew, so that what is sent is what was read.
func (n *node) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case kindBool:
		return strconv.AppendBool(b, n.yes)
	case kindNumber:
		return append(b, n.text...)
	case kindText:
		return appendText(b, n.text)
	case kindList:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	case kindObject:
		b = append(b, '{')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, n.names[i]), ':')
			b = item.append(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendText(b []byte, s string) []byte {
	quoted, err := encode(s)
	if err != nil {
		return append(b, `""`...) // text always encodes
	}
	return append(b, quoted...)
}

// encode writes JSON without the escapes for HTML, which would change the
// model's view of code for no use.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
