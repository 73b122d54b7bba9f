package ask

import (
	"fmt"
	"time"

	"parlour/runner/policy"
)

// Sentence gives what a person reads when a message was not answered. The
// sentences name no runner, no path and no host, and nothing reads an outcome
// back from them: Cause travels as a type.
func Sentence(c Cause) string {
	switch c {
	case NoRunner:
		return "No safe assistant is available here right now, so nothing was run. Please tell the operator."
	case NoSandbox:
		return "This host cannot give the required sandbox, so nothing was run. Please tell the operator."
	case NotAllowed:
		return "You are not on the list of people whom I may answer here."
	case Lowered:
		return "Your rights here were lowered while I worked on this, so I do not show the answer. Please ask again."
	case Unchecked:
		return "I could not check again who you are here, so I do not show the answer. Please ask again."
	case TooLong:
		return "The question is longer than 64 KiB. Please ask a shorter one."
	case TooFast:
		return "That is more questions than one person may ask in a minute. Please wait a little."
	case Busy:
		return "You already have as many questions waiting as one person may. Please ask again when one is answered."
	case WallClock:
		return "The answer took longer than a run may take, so I stopped it. A smaller question may work."
	case Stalled:
		return "The assistant went silent for too long, so I stopped it. Please ask again."
	case TooMuch:
		return "The assistant printed more than an answer may hold, so I stopped it. A smaller question may work."
	case Empty:
		return "The assistant ended without an answer. Please ask again."
	case Failed:
		return "The assistant failed, so there is no answer. Please ask again, or tell the operator."
	case ModelDenied:
		return "The model's provider did not accept the bot, so there is no answer. Please tell the operator."
	case ModelBusy:
		return "The model's provider has too much to do right now, so there is no answer. Please ask again later."
	case ModelDown:
		return "The model's provider did not answer, so there is no answer. Please ask again later."
	case ModelLimit:
		return "The answer needed more of the model than one run may use, so I stopped it. A smaller question may work."
	case ToolCall:
		return "The assistant tried something that it may not do here, so I stopped it. Please ask differently."
	case NotStarted:
		return "The assistant could not be started, so nothing was run. Please tell the operator."
	case AskerGone:
		return "The terminal that asked is gone."
	case Interrupted:
		return "Stopped before there was an answer."
	case GaveUp:
		return "I was restarted too often over this question, so I gave it up. Please ask it differently."
	case Taken:
		return "This question is being answered already. Please ask for the answer again in a moment."
	case NotTaken:
		return "Nobody came for this question in time, so it was not run. Please ask it again."
	}
	return "Something went wrong, so there is no answer. Please tell the operator."
}

// KindOf gives the end that a cause leads to.
func KindOf(c Cause) Kind {
	switch c {
	case NoCause:
		return Answered
	case NotAllowed, Lowered, Unchecked, TooLong, TooFast, Busy, NoSandbox:
		return Refused
	case AskerGone, Interrupted:
		return Cancelled
	case WallClock, Stalled, ModelLimit, GaveUp, NotTaken:
		return Expired
	}
	return Unavailable
}

// Held gives the word of a receipt for how its run was held. Only the sandboxes
// that policy knows by name are one.
// Guarded by tests/contract TestReceiptsSaySandboxedForSandboxesOnly.
func Held(r Receipt) string {
	if _, err := policy.ParseRung(r.Rung); err != nil {
		return "not sandboxed"
	}
	return "sandboxed"
}

// Working gives what a person reads while a question is worked on. It names the
// runner, as a receipt does, and nothing of the host.
func Working(p Progress) string {
	since := elapsed(p.For)
	switch {
	case p.Stopped:
		return "I was stopped while I worked on this. The question is kept, and taken up again when I am back."
	case p.Runner == "":
		return fmt.Sprintf("Working on it: %s.", since)
	case p.Before == "":
		return fmt.Sprintf("Working on it: %s, %s.", p.Runner, since)
	case p.Before == p.Runner:
		return fmt.Sprintf("Working on it: %s once more, %s.", p.Runner, since)
	}
	return fmt.Sprintf("Working on it: %s in place of %s, %s.", p.Runner, p.Before, since)
}

// elapsed writes a time as people say it, to the second.
func elapsed(d time.Duration) string {
	s := max(int(d.Round(time.Second)/time.Second), 0)
	if s < 60 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min %d s", s/60, s%60)
}
