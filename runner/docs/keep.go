package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The names of the files in a folder of indexes. An index has the hash of its
// documents and its own hash between prefix and suffix.
const (
	indexPrefix, indexSuffix = "docs-", ".sqlite"
	tmpPrefix, tmpSuffix     = ".docs-", ".tmp"
)

// outdated is the age at which an index of other documents is deleted. A bot of
// another version may still use a younger one.
const outdated = 24 * time.Hour

// whole gives the index of the folder whose name begins with prefix and whose
// bytes are those that its name promises, or nothing. To read it costs less than
// to read the documents, which had to be done to know their hash.
func whole(dir, prefix string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("folder for the index: %w", err)
	}
	for _, e := range entries {
		want, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		index := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() {
			return "", fmt.Errorf("index %s is not a regular file", index)
		}
		got, err := fileHash(index)
		if err == nil && got+indexSuffix == want {
			return index, nil
		}
	}
	return "", nil
}

func fileHash(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sweep deletes what lies beside a new index and is outdated: indexes of other
// documents, damaged ones, and what a build that was killed left behind. The
// file system's own clock decides. What cannot be deleted harms no answer and is
// tried again beside the next new index.
func sweep(index string) {
	built, err := os.Lstat(index)
	if err != nil {
		return
	}
	dir := filepath.Dir(index)
	entries, _ := os.ReadDir(dir) // what could be listed
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && ours(e.Name()) && info.Mode().IsRegular() && built.ModTime().Sub(info.ModTime()) > outdated {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func ours(name string) bool {
	return strings.HasPrefix(name, indexPrefix) && strings.HasSuffix(name, indexSuffix) ||
		strings.HasPrefix(name, tmpPrefix) && strings.HasSuffix(name, tmpSuffix)
}
