package ask

// EndedBy is the end of a job that no run has answered: the fixed sentence of
// its cause, and a receipt without a sandbox. The detail is for the operator.
func EndedBy(job Job, cause Cause, detail string) *Ended {
	return &Ended{
		Outcome: Outcome{Kind: KindOf(cause), Cause: cause, Text: Sentence(cause)},
		Receipt: Receipt{Job: job.ID, Tier: job.Decision.Tier, Rule: job.Decision.Rule, Rung: "none"},
		Detail:  detail,
	}
}
