package main

import "slices"

// mutants lists the safety lines by area.
func mutants() []mutant {
	return slices.Concat(
		ofTheWire(), ofTheModel(), ofTheRunner(), ofTheTiers(), ofTheGuardrail(), ofTheSecrets(), ofTheJournal(), ofTheStore(),
		ofTheBridge(), ofTheManifests(), ofTheRunnerFiles(), ofDiscord(), ofSlack(), ofTheCommands(),
	)
}
