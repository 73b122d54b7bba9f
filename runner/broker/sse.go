package broker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent is the longest event of a stream. The last event of OpenAI repeats
// the whole answer.
const maxEvent = 16 << 20

var errLongEvent = errors.New("an event of the stream is too long")

// events reads server-sent events.
type events struct {
	in   *bufio.Reader
	size int
	soft bool // the last line ended with a carriage return
}

func newEvents(r io.Reader) *events { return &events{in: bufio.NewReaderSize(r, 32<<10)} }

// next gives the data of the next event, nil for a comment, which only says that
// the other side is alive. At the end it gives io.EOF; an event that no empty
// line ended is none. The name of an event is repeated in its data and not read.
func (e *events) next() ([]byte, error) {
	var data []byte
	has := false
	e.size = 0
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if has {
				return data, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "":
			if !has {
				return nil, nil
			}
		case "data":
			if has {
				data = append(data, '\n')
			}
			data = append(data, value...)
			has = true
		}
	}
}

// line reads one line without its end, which is LF, CR or both.
func (e *events) line() ([]byte, error) {
	var out []byte
	for {
		b, err := e.in.ReadByte()
		if err != nil {
			return nil, err
		}
		if b == '\n' && e.soft {
			e.soft = false
			continue // the second half of the line end before
		}
		e.soft = b == '\r'
		if b == '\n' || b == '\r' {
			return bytes.TrimPrefix(out, []byte("\ufeff")), nil
		}
		if e.size++; e.size > maxEvent {
			return nil, errLongEvent
		}
		out = append(out, b)
	}
}

// frame writes an event.
func frame(name string, data []byte) []byte {
	out := make([]byte, 0, len(name)+len(data)+20)
	out = append(append(append(out, "event: "...), name...), '\n')
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}
