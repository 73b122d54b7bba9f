// Package secret holds values that must never be printed, and takes them out of
// text.
//
// A Value prints <secret> in every way in which Go prints things; Reveal is the
// only way to its content. A Redactor removes exact values, also when they were
// encoded, and a few well-known shapes of credentials. It makes no promise about
// secrets that it was not told of and whose shape it does not know.
package secret

import (
	"fmt"
	"log/slog"
)

const mask = "<secret>"

// Value is one secret. The zero Value is empty.
type Value struct{ content string }

// New wraps a secret.
func New(content string) Value { return Value{content} }

// Reveal gives the content. Use it only where the secret leaves the process on
// purpose.
func (v Value) Reveal() string { return v.content }

// Empty says whether there is no secret.
func (v Value) Empty() bool { return v.content == "" }

// String prints <secret>.
func (v Value) String() string { return mask }

// GoString prints <secret>.
func (v Value) GoString() string { return mask }

// Format prints <secret> for every verb.
func (v Value) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, mask) }

// LogValue logs <secret>.
func (v Value) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalText writes <secret>, so JSON and YAML do too.
func (v Value) MarshalText() ([]byte, error) { return []byte(mask), nil }
