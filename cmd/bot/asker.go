package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"parlour/guardrail/secret"
	"parlour/tiers"
)

const (
	// askerKeyFile holds the secret of the aliases, in the state folder.
	askerKeyFile  = "asker.key"
	askerKeyBytes = 32
	// askerFileBytes is the file's size: hexadecimal digits and a line's end.
	askerFileBytes = 2*askerKeyBytes + 1
	aliasBytes     = 16
)

// aliases names people and tiers to a model's provider. Whoever lacks the secret
// of this state folder cannot find out whom a name means, and nothing else about
// the operator either.
// Guarded by tests/attacks TestT28EachAskerHasOneNameAtTheProvider.
type aliases struct{ key secret.Value }

// Asker names a person by the key of its identity: always alike here, and
// nothing like it elsewhere.
func (a aliases) Asker(person string) string { return a.alias("asker", person) }

// Cache names a tier's prompt cache. It holds nothing of any person.
func (a aliases) Cache(tier tiers.Tier) string { return a.alias("cache", tier.String()) }

func (a aliases) alias(kind, of string) string {
	mac := hmac.New(sha256.New, []byte(a.key.Reveal()))
	_, _ = io.WriteString(mac, kind+"\x00"+of) // never fails, by its contract
	return hex.EncodeToString(mac.Sum(nil)[:aliasBytes])
}

// nameAskers reads the secret of the aliases, or makes it at the first time. The
// journal has made the state folder private before.
func (h *house) nameAskers() error {
	key, err := askerKey(filepath.Join(h.state, askerKeyFile))
	if err != nil {
		return err
	}
	h.aliases = aliases{key}
	h.secrets, err = secret.NewRedactor(append(h.cfg.secrets(), key)...)
	return err
}

func askerKey(path string) (secret.Value, error) {
	key, err := readAskerKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeAskerKey(path); err != nil {
		return secret.Value{}, fmt.Errorf("make %s: %w", path, err)
	}
	return readAskerKey(path)
}

// readAskerKey refuses a secret that others may know or that is none. Making
// another one in silence would give everybody a second name at the provider.
func readAskerKey(path string) (secret.Value, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return secret.Value{}, err
	case err != nil || !info.Mode().IsRegular():
		return secret.Value{}, bad("%s is not a file that can be read: delete it, and people get new names at the model's provider", path)
	case info.Mode().Perm()&0o077 != 0:
		return secret.Value{}, bad("%s is open to others (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
	}
	if !ownedByUs(info) {
		return secret.Value{}, bad("%s belongs to another user, who may know it: delete it, and people get new names at the model's provider", path)
	}
	if info.Size() != askerFileBytes {
		return secret.Value{}, bad("%s is damaged: put a copy back, or delete it, and people get new names at the model's provider", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return secret.Value{}, bad("read the asker's key: %w", err)
	}
	raw, err := hex.DecodeString(string(text[:max(len(text)-1, 0)]))
	if err != nil || len(raw) != askerKeyBytes || text[len(text)-1] != '\n' {
		return secret.Value{}, bad("%s is damaged: put a copy back, or delete it, and people get new names at the model's provider", path)
	}
	return secret.New(hex.EncodeToString(raw)), nil
}

// makeAskerKey puts a whole secret in its place at once. Of two processes that
// do so at the same time one wins, and both read what it wrote.
func makeAskerKey(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+askerKeyFile+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	random := make([]byte, askerKeyBytes)
	_, _ = rand.Read(random) // never fails, by its contract
	_, err = file.WriteString(hex.EncodeToString(random) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
