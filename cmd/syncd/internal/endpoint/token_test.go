package endpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// TestTokenFile does each damage to a token file. What the error says to do helps.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.token")
	token, err := MakeToken(path)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Repeat("my own ", 3) + "token"
	for name, bad := range map[string]string{
		"empty": "", "cut": token[:40], "cut at the end": token[:len(token)-1], "zeros": string(make([]byte, len(token)+1)), "flipped": token[:20] + "!" + token[21:] + "\n",
		"two lines": token + "\n" + token + "\n", "short": "token\n", "spaces": own + "\n", "a byte that cannot be printed": token[:20] + "\x7f" + "\n",
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := MakeToken(path); !errors.Is(err, peer.ErrFileDamaged) || !strings.Contains(err.Error(), "remove it") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if token, err = MakeToken(path); err != nil {
			t.Errorf("made anew: %v", err)
		}
	}
	for _, good := range []string{token + "\n", token + "\r\n", strings.Repeat("0f", 32), strings.Repeat("0f", 30) + " \n", strings.ReplaceAll(own, " ", "-") + "\n"} {
		if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := MakeToken(path); err != nil || got != strings.TrimSpace(good) {
			t.Errorf("%q: %q, %v", good, got, err)
		}
	}
	for name, do := range map[string]func() error{
		"is a folder":    func() error { return os.Mkdir(path, 0o700) },
		"symbolic links": func() error { return os.Symlink(path, path) },
		"(mode 0640)":    func() error { return errors.Join(os.WriteFile(path, []byte(token+"\n"), 0o600), os.Chmod(path, 0o640)) },
	} {
		if err := errors.Join(os.RemoveAll(path), do()); err != nil {
			t.Fatal(err)
		}
		if _, err := MakeToken(path); err == nil || errors.Is(err, peer.ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
