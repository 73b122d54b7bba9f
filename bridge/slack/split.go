package slack

import (
	"strings"
	"unicode/utf8"
)

// textLimit is the most that one post holds, in the units in which Slack's
// clients count. Slack recommends 4,000 and splits longer texts by itself, which
// breaks blocks of code.
const textLimit = 3900

// part is one post of an answer: a piece of the whole, and what is put around it
// so that a block of code that was cut is one on both sides.
type part struct {
	body           string
	opened, closed bool
}

// String gives the text to post.
func (p part) String() string {
	text := p.body
	if p.opened {
		text = fence + "\n" + text
	}
	if p.closed {
		text = strings.TrimSuffix(text, "\n") + "\n" + fence
	}
	return text
}

const (
	around   = len(fence) + 1 // a fence and its line break
	worthily = 80             // room below which nothing new is begun in a part
	least    = 40             // a limit below this holds no escape between two fences
)

// split cuts what mrkdwn made into parts that fit, at the ends of lines where it
// can. The bodies of the parts are the text, byte for byte.
func split(text string, limit int) []part {
	s := splitter{limit: max(limit, least)}
	for _, line := range strings.SplitAfter(text, "\n") {
		s.line(line)
	}
	s.add(s.held)
	s.flush()
	return s.parts
}

type splitter struct {
	limit  int
	parts  []part
	body   strings.Builder
	size   int
	held   string // a fence that opens a block: it goes where the next line goes
	opened bool   // this part began inside a block
	inside bool   // the next line is inside a block
}

func (s *splitter) line(line string) {
	isFence := strings.TrimSuffix(line, "\n") == fence
	if isFence && !s.inside && s.held == "" {
		s.held = line
		return
	}
	lead, reserve := s.held, 0
	s.held = ""
	if (s.inside || lead != "") && !isFence {
		reserve = around // for the fence that closes the block if it is cut here
	}
	need := units(lead) + units(line) + reserve
	room := s.limit - s.size
	if need > room && (need <= s.limit-around || room < min(worthily, s.limit/2)) {
		s.flush()
	}
	s.add(lead)
	s.inside = s.inside || lead != ""
	for s.size+units(line)+reserve > s.limit && !isFence {
		piece := fitting(line, s.limit-s.size-reserve)
		s.add(piece)
		s.flush()
		line = line[len(piece):]
	}
	s.add(line)
	s.inside = s.inside && !isFence
}

func (s *splitter) add(text string) {
	s.body.WriteString(text)
	s.size += units(text)
}

func (s *splitter) flush() {
	if s.body.Len() == 0 {
		return
	}
	s.parts = append(s.parts, part{s.body.String(), s.opened, s.inside})
	s.body.Reset()
	s.opened, s.size = s.inside, 0
	if s.opened {
		s.size = around
	}
}

// units counts as JavaScript does: characters beyond the first plane are two.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// fitting gives the longest beginning of a line that fits and cuts no character
// and no escape, at a blank if one is in its last third.
func fitting(line string, limit int) string {
	end, size := 0, 0
	for end < len(line) {
		token := step(line[end:])
		if size += units(token); size > limit && end > 0 {
			break
		}
		end += len(token)
	}
	if blank := strings.LastIndexByte(line[:end], ' '); end < len(line) && blank > end*2/3 {
		return line[:blank+1]
	}
	return line[:end]
}

// step gives the next character, or the next escape as a whole.
func step(s string) string {
	for _, escape := range []string{"&amp;", "&lt;", "&gt;"} {
		if strings.HasPrefix(s, escape) {
			return escape
		}
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}
