// Package docs carries Parlour's handbook inside the program.
//
// It holds docs/handbook/ and nothing else: every reader of the bot's answers
// may read all of it. It refuses to know any other file, so a document that is
// laid beside the handbook never reaches an answer by accident.
package docs

import (
	"embed"
	"io/fs"
)

//go:embed handbook/*.md
var handbook embed.FS

// Handbook gives the handbook as read-only files under "handbook/".
func Handbook() fs.FS { return handbook }
