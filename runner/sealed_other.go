//go:build !linux

package runner

import (
	"io"
	"os"
)

// unnamed gives a temporary file whose name is already gone.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "question")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// fill writes the text and rewinds the file.
func fill(file *os.File, text string) error {
	if _, err := io.WriteString(file, text); err != nil {
		return err
	}
	_, err := file.Seek(0, io.SeekStart)
	return err
}
