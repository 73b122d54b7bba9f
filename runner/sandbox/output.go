package sandbox

import (
	"errors"
	"io"
	"os"
	"time"
)

// waitDelay is how long the output may stay open after the program's end. In a
// box nobody is left who could hold it.
const waitDelay = time.Second

// output carries what the program prints to the writers. The program gets the
// ends of pipes, never a writer's own file: that could be a way to a terminal or
// to the folder behind it.
type output struct {
	child   [2]*os.File // of the program: standard output and standard error
	ours    [2]*os.File
	copied  chan error
	carries bool
}

func newOutput() (*output, error) {
	o := &output{copied: make(chan error, 2)}
	for i := range o.child {
		var err error
		if o.ours[i], o.child[i], err = os.Pipe(); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// copy begins to carry. A nil writer drops what it would get.
func (o *output) copy(writers ...io.Writer) {
	o.carries = true
	for i, from := range o.ours {
		to := writers[i]
		if to == nil {
			to = io.Discard
		}
		go func() {
			_, err := io.Copy(struct{ io.Writer }{to}, from) // never a short cut around the writer
			o.copied <- err
		}()
	}
}

// end waits until all is carried, and says whether somebody kept the output open
// for too long after the end. What was written before is complete.
func (o *output) end() (held bool, err error) {
	if !o.carries { // nobody has asked for it
		o.close()
		return false, nil
	}
	late := time.AfterFunc(waitDelay, func() {
		for _, f := range o.ours {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
	})
	for range o.ours {
		switch e := <-o.copied; {
		case errors.Is(e, os.ErrDeadlineExceeded):
			held = true
		case e != nil && err == nil:
			err = e
		}
	}
	late.Stop()
	o.close()
	return held, err
}

func (o *output) close() {
	for _, f := range append(o.child[:], o.ours[:]...) {
		if f != nil {
			_ = f.Close()
		}
	}
}
