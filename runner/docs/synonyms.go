package docs

// same gives one stem for words that people who use computers take for one
// another: who asks about the "folder" means the "directory" of the document.
// The groups are about the language. No document and no question is in them.
func same(stem string) string {
	switch stem {
	case "permit":
		return "allow"
	case "repli", "respons":
		return "answer"
	case "auth", "login":
		return "authent"
	case "ban", "deni":
		return "block"
	case "chat":
		return "convers"
	case "valid", "verifi":
		return "check"
	case "cite", "citat", "quot":
		return "sourc"
	case "config":
		return "configur"
	case "eras", "remov":
		return "delet"
	case "dm":
		return "direct"
	case "directori":
		return "folder"
	case "env":
		return "environ"
	case "error", "mistak", "typo":
		return "fault"
	case "everybodi":
		return "everyon"
	case "log", "histori":
		return "journal"
	case "kill", "abort", "termin":
		return "stop"
	case "mac":
		return "maco"
	case "maximum", "max":
		return "limit"
	case "repo":
		return "repositori"
	case "keep", "save", "kept":
		return "store"
	case "var":
		return "variabl"
	}
	return stem
}
