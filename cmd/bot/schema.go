package main

import (
	"context"

	"parlour/manifests"
)

type schemaCmd struct{}

// Run prints the JSON Schema of tier files.
func (s *schemaCmd) Run(_ context.Context, p *process, _ *cli) error {
	text, err := manifests.Schema()
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
