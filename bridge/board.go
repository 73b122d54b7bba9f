package bridge

import "sync"

// Board is what an adapter knows of the message that shows the progress of one
// question. The zero Board says that nothing is known.
type Board struct {
	Place   string // where the outcome will stand; empty: not looked for yet
	Message string // the message that is shown there; empty: there is none, as far as is known
	Fresh   bool   // the question was accepted by this process: nothing of an earlier one is in the chat
	Unsure  bool   // a message may have been posted although nobody heard so
	Off     bool   // the platform does not want it: no more reports
}

// Boards remembers the boards of the questions that are worked on, and keeps
// reports and the delivery of one question apart: once it is being delivered,
// nothing more is reported. It is bounded; what it has forgotten has to be
// looked for in the chat.
type Boards struct {
	mu       sync.Mutex
	half     int
	old, new map[string]*slate
}

type slate struct {
	mu    sync.Mutex
	over  bool
	board Board
}

// NewBoards makes room for about so many questions.
func NewBoards(size int) *Boards {
	return &Boards{half: max(size/2, 1), new: map[string]*slate{}}
}

func (b *Boards) of(job string) *slate {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.new[job]
	if s != nil {
		return s
	}
	if s = b.old[job]; s == nil {
		s = &slate{}
	}
	if len(b.new) >= b.half {
		b.old, b.new = b.new, map[string]*slate{}
	}
	b.new[job] = s
	return s
}

// Expect notes that this process has accepted a question.
func (b *Boards) Expect(job string) {
	s := b.of(job)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.Fresh = true
}

// Report lets one report at a time use the board of a question. It does nothing
// where reports are over.
func (b *Boards) Report(job string, do func(*Board) error) error {
	s := b.of(job)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.board.Off {
		return nil
	}
	return do(&s.board)
}

// Close ends the reports of a question, after waiting for one that is under way,
// and gives what they have left.
// Guarded by tests/contract TestNothingIsReportedOnceTheDeliveryHasBegun.
func (b *Boards) Close(job string) Board {
	s := b.of(job)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.board
}

// Cleared notes that nothing of the progress is in the chat any more.
func (b *Boards) Cleared(job string) {
	s := b.of(job)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.Message, s.board.Unsure = "", false
}
