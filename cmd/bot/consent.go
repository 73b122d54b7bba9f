package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"parlour/manifests"
)

// consent is the folder in which a serving bot and the operator's terminal tell
// each other to which state of the manifests the operator has consented.
type consent struct{ dir string }

// The files of the folder: the bot writes the one, the command the other.
const (
	standingFile = "standing.json"
	acceptedFile = "accepted.json"
)

// mostConsent is the size limit of a file of the folder: more than any states of
// the manifests that are kept.
const mostConsent = 512 << 20

func consentIn(state string) consent { return consent{filepath.Join(state, "consent")} }

// standing is what a serving bot goes by. Later states are bounded by it.
type standing struct {
	Under   []manifests.Texts `json:"under"`
	Names   []string          `json:"names"`           // runners that the texts may name
	Runners map[string]string `json:"runners"`         // hashes of the runner files that are used; without one: the shipped runner is
	Files   manifests.Texts   `json:"files,omitempty"` // of the same, to tell what changed
	Outlets map[string]string `json:"outlets"`         // of the configuration that are used
}

// accepted is what the operator has consented to.
type accepted struct {
	Tiers   string            `json:"tiers,omitempty"`
	Runners map[string]string `json:"runners,omitempty"` // hashes, or shippedRunner
	Outlets map[string]string `json:"outlets,omitempty"`
	At      time.Time         `json:"at"`
}

// shippedRunner stands for the runner that is part of the program.
const shippedRunner = "shipped"

func (a accepted) empty() bool { return a.Tiers == "" && len(a.Runners)+len(a.Outlets) == 0 }

// past is what earlier states have left. The zero past has accepted nothing.
type past struct {
	standing
	first bool // no bot has served from this state folder
}

// past reads it. Where that fails nothing of it counts.
func (c consent) past() (past, error) {
	var p past
	err := c.read(standingFile, &p.standing)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return past{first: true}, nil
	case err == nil && len(p.Under) == 0:
		err = errors.New("it names no state of the manifests")
	}
	if err != nil {
		return past{}, err
	}
	return p, nil
}

// accepted gives the operator's last consent that is not used up yet. One that
// cannot be read, or that others could have written, is none.
func (c consent) accepted() (accepted, error) {
	var a accepted
	if err := c.read(acceptedFile, &a); errors.Is(err, fs.ErrNotExist) {
		return accepted{}, nil
	} else if err != nil {
		return accepted{}, fmt.Errorf("the consent in %s does not count: %w", c.dir, err)
	}
	return a, nil
}

func (c consent) accept(a accepted) error {
	file, err := c.write(acceptedFile, a)
	if err != nil {
		return err
	}
	return os.Rename(file, filepath.Join(c.dir, acceptedFile))
}

// keep stores what a serving bot goes by.
func (c consent) keep(s standing) error {
	file, err := c.write(standingFile, s)
	if err != nil {
		return err
	}
	return os.Rename(file, filepath.Join(c.dir, standingFile))
}

// retire leaves the rest of a consent that was read. A newer one, which may be
// written at any time, stays as it is.
// Guarded by TestT13ANewerConsentStays.
func (c consent) retire(yes, rest accepted) (err error) {
	if reflect.DeepEqual(yes, rest) {
		return nil
	}
	file, aside := filepath.Join(c.dir, acceptedFile), filepath.Join(c.dir, "."+acceptedFile+"-used")
	if err := os.Rename(file, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	put := aside
	var found accepted
	if err := c.read(filepath.Base(aside), &found); err == nil && reflect.DeepEqual(found, yes) {
		if rest.empty() {
			return os.Remove(aside)
		}
		if put, err = c.write(acceptedFile, rest); err != nil {
			return err // nothing is left of it, which only takes away
		}
	}
	if err = os.Link(put, file); errors.Is(err, fs.ErrExist) {
		err = nil // one that is newer still
	}
	if put != aside {
		err = errors.Join(err, os.Remove(put))
	}
	return errors.Join(err, os.Remove(aside))
}

// guard refuses a folder in which others could consent. One that is not there is
// no fault: nobody has consented in it.
// Guarded by tests/journeys TestT13AConsentOfOthersIsNone.
func (c consent) guard() error {
	for _, dir := range []string{filepath.Dir(c.dir), c.dir} {
		info, err := os.Lstat(dir)
		if err == nil && dir != c.dir && info.Mode()&fs.ModeSymlink != 0 {
			info, err = os.Stat(dir) // a state folder may be a link of the operator's
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return bad("%s, where what you accepted is kept: %w", dir, err)
		case !info.IsDir():
			return bad("%s, where what you accepted is kept, is not a folder: delete it", dir)
		case !ownedByUs(info):
			return bad("%s, where what you accepted is kept, belongs to another user: run this as that user, or give it to the bot's", dir)
		case info.Mode().Perm()&0o022 != 0:
			return bad("%s, where what you accepted is kept, can be written by others (mode %04o): look through it, then run chmod 700 on it", dir, info.Mode().Perm())
		}
	}
	return nil
}

// read reads a file of the folder that nobody but the bot's user could have
// written. It follows no link and waits for no pipe.
// Guarded by tests/journeys TestT13AConsentOfOthersIsNone and
// TestT13WhatIsNoFileIsNoConsent.
func (c consent) read(name string, to any) error {
	if err := c.guard(); err != nil {
		return err
	}
	file, err := openAsIs(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case !ownedByUs(info):
		return fmt.Errorf("%s belongs to another user", name)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others (mode %04o)", name, info.Mode().Perm())
	case info.Size() > mostConsent:
		return fmt.Errorf("%s is larger than %d bytes", name, mostConsent)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostConsent))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// write writes a whole file beside its place, and gives its name.
func (c consent) write(name string, value any) (path string, err error) {
	text, err := json.Marshal(value)
	switch {
	case err != nil:
		return "", err
	case len(text) >= mostConsent:
		return "", fmt.Errorf("%s would be larger than %d bytes", name, mostConsent)
	}
	if err := errors.Join(c.guard(), os.MkdirAll(c.dir, 0o700)); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(c.dir, "."+name+"-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
