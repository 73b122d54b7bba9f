package docs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is one Markdown file.
type document struct{ name, text string }

// load reads every regular *.md file of the set, sorted by name. Symbolic
// links are left out, so a link cannot bring in what lies outside; an fs.FS
// that follows links on its own is the caller's to avoid (use os.Root).
func load(ctx context.Context, fsys fs.FS) ([]document, error) {
	var found []document
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular() || path.Ext(name) != ".md":
			return nil
		case len(found) == MaxFiles:
			return fmt.Errorf("more than %d documents", MaxFiles)
		case !plainName(name):
			return fmt.Errorf("document %q: its name holds control characters", name)
		}
		text, err := readDocument(fsys, name)
		if err != nil {
			return err
		}
		if total += len(text); total > MaxTotal {
			return fmt.Errorf("more than %d bytes of documents", MaxTotal)
		}
		found = append(found, document{name, text})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return found, nil
}

// readDocument checks the opened file again: it may have been swapped since
// its folder was listed.
func readDocument(fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("document %q is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return "", err
	}
	if len(data) > MaxFile {
		return "", fmt.Errorf("document %q is larger than %d bytes", name, MaxFile)
	}
	return cleanText(string(data)), nil
}

// cleanText gives valid UTF-8 with plain line ends and without NUL, which
// SQLite would take for the end of the text.
func cleanText(s string) string {
	s = strings.ToValidUTF8(strings.TrimPrefix(s, "\ufeff"), "\ufffd")
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd").Replace(s)
}

// plainName says whether a name can stand in a citation as it is.
func plainName(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
}

// contentHash names the set: the same documents and the same format of the
// index give the same name.
func contentHash(documents []document) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", format)
	for _, d := range documents {
		fmt.Fprintf(h, "%q %d\n%s", d.name, len(d.text), d.text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
