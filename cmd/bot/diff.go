package main

import (
	"context"

	"parlour/manifests"
)

type diffCmd struct {
	Old string `arg:"" help:"Folder of manifests, or shipped."`
	New string `arg:"" help:"Folder of manifests, or shipped."`
}

// Run compares two folders. It starts nothing, and what the configuration says,
// such as the base address of a provider, is no part of it.
func (d *diffCmd) Run(_ context.Context, p *process, c *cli) error {
	old, err := manifests.Load(folderOf(d.Old))
	if err != nil {
		return err
	}
	now, err := manifests.Load(folderOf(d.New))
	if err != nil {
		return err
	}
	changes := manifests.Diff(old, now)
	if c.JSON {
		return p.json(map[string]any{"gains": changes.Gains(), "losses": changes.Losses(), "changes": changes})
	}
	if len(changes) == 0 {
		p.print("no difference in rights")
	}
	for _, ch := range changes {
		tier := ""
		if ch.Kind != "runner" && ch.Kind != "block" {
			tier = ch.Tier.String() + ", "
		}
		p.print("%-7s %s%s: %s (%s)", ch.Effect, tier, ch.Kind, ch.What, ch.At)
	}
	return nil
}

// folderOf reads the word for the manifests that are part of the program.
func folderOf(arg string) string {
	if arg == "shipped" {
		return ""
	}
	return arg
}
