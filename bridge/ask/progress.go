package ask

import "time"

// Progress is what people may see of a question that is worked on.
type Progress struct {
	Runner  string        // empty: none is picked yet
	Before  string        // the runner that failed on this question before; empty: none has
	For     time.Duration // since the work on the question began
	Stopped bool          // the bot stops, and takes the question up again when it is back
}

// EventUndeliverable is the kind of event that ends the delivery of an outcome
// that its platform will not take. Its data is Undeliverable.
const EventUndeliverable = "answer/undeliverable"

// Undeliverable is the data of EventUndeliverable.
type Undeliverable struct {
	Why string `json:"why"` // for the operator
}

// EventWithheld is the kind of event that says that a stored answer was not
// shown, because its person had lost the right to it. Its data is Withheld.
const EventWithheld = "answer/withheld"

// Withheld is the data of EventWithheld.
type Withheld struct {
	Cause Cause  `json:"cause"` // of the sentence that was shown in its place
	Why   string `json:"why"`   // for the operator
}
