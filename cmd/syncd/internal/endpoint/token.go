package endpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"

	"github.com/syncd-io/syncd/internal/durable"
)

// A token that the daemon makes begins with made, has madeToken characters and ends with the
// CRC-32C of the others. One that a person writes has leastToken or more.
const (
	made       = "syncd-"
	madeToken  = len(made) + 60
	leastToken = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(token string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(token), castagnoli))
}

// ReadToken reads a token file. It must be readable by its owner only.
func ReadToken(path string) (string, error) {
	b, err := durable.ReadPrivate(path)
	if err != nil {
		return "", fmt.Errorf("reading the API token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	switch {
	case len(token) < leastToken, strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		err = durable.Damaged(path, "does not hold an API token (one line of %d printable characters or more): remove it, and the daemon makes a new one", leastToken)
	case strings.HasPrefix(token, made) && (len(token) != madeToken || checksum(token[:madeToken-8]) != token[madeToken-8:]):
		err = durable.Damaged(path, "is damaged (its checksum does not match): remove it, and the daemon makes a new one")
	}
	return token, err
}

// MakeToken reads the token file, or makes it with a fresh token.
func MakeToken(path string) (string, error) {
	token, err := ReadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = made + rand.Text() + rand.Text() // 256 bits and more
	token += checksum(token)
	if err := durable.WriteFile(path, []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("making the API token: %w", err)
	}
	return token, nil
}
