package main

import "slices"

// mutants lists the safety lines by area.
func mutants() []mutant {
	return slices.Concat(
		ofTheWire(), ofTheModel(), ofTheRunner(), ofTheTiers(), ofTheGuardrail(), ofTheSecrets(), ofTheJournal(), ofTheStore(), ofTheGrants(),
		ofTheBridge(), ofTheManifests(), ofTheRunnerFiles(),
		ofTheView(), ofTheCalls(), ofTheRights(), ofTheSecondWall(), ofTheRun(), ofTheRungs(), ofTheMachine(), ofThePolicy(), ofTheProof(), ofDiscord(), ofSlack(), ofTheCommands(),
		ofConsent(), ofWhatIsAConsent(), ofTheStates(), ofTheReview(),
	)
}

// trials lists them all with who runs their tests.
func trials() []trial {
	var all []trial
	for _, m := range mutants() {
		all = append(all, trial{m, false})
	}
	for _, m := range ofTheUsersBox() {
		all = append(all, trial{m, true})
	}
	return all
}
