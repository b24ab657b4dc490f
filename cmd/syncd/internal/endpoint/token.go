package endpoint

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// ReadToken reads a token file. It must be readable by its owner only.
func ReadToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("reading the API token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no modes
		return "", fmt.Errorf("the API token %s can be read by others (mode %04o); make it yours with: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the API token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("the API token %s is empty; remove it, and the daemon makes a new one", path)
	}
	return token, nil
}

// MakeToken reads the token file, or makes it with a fresh token.
func MakeToken(path string) (string, error) {
	token, err := ReadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	token = hex.EncodeToString(b[:])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("making the API token: %w", err)
	}
	_, err = fmt.Fprintln(f, token)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("making the API token: %w", err)
	}
	return token, nil
}
