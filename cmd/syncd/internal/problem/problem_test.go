package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// TestRoundTrip: what errors.Is and the exit code say of an error, they say
// of it on the other side of HTTP, too.
func TestRoundTrip(t *testing.T) {
	for _, k := range kinds {
		err := fmt.Errorf("put %q: %w, really", "key", k.err)
		raw, bad := json.Marshal(From(err))
		if bad != nil {
			t.Fatal(bad)
		}
		var p Problem
		if bad := json.Unmarshal(raw, &p); bad != nil {
			t.Fatal(bad)
		}
		if !errors.Is(&p, k.err) || p.Error() != err.Error() || Exit(&p) != Exit(err) || Exit(err) != k.exit || p.Status != k.status {
			t.Errorf("%v came back as %+v, exit %d", err, p, Exit(&p))
		}
	}
}

func TestExit(t *testing.T) {
	for err, want := range map[error]int{
		nil:                             ExitOK,
		errors.New("other"):             ExitError,
		From(errors.New("other")):       ExitError,
		Usage("x"):                      ExitUsage,
		fmt.Errorf("y: %w", Usage("x")): ExitUsage,
		Malformed(errors.New("line")):   ExitError,
		ErrNoDaemon:                     ExitNoDaemon,
		peer.ErrNotFound:                ExitNotFound,
		peer.ErrDeleted:                 ExitNotFound,
		ErrNoNamespace:                  ExitNotFound,
		peer.ErrUnreachable:             ExitTryAgain,
		peer.ErrBusy:                    ExitTryAgain,
		peer.ErrDenied:                  ExitDenied,
		errors.Join(peer.ErrUnconfirmed, peer.ErrDenied):   ExitLimit,
		errors.Join(peer.ErrUnconfirmed, peer.ErrConflict): ExitConflict,
		peer.ErrCorrupt: ExitCorrupt,
		peer.ErrLimit:   ExitLimit,
		fmt.Errorf("create: %w", &os.PathError{Err: syscall.EROFS}): ExitLimit,
		context.DeadlineExceeded:                                    ExitLimit,
		ErrDiffers:                                                  ExitDiffers,
		FromStatus(413, "too long"):                                 ExitLimit,
		FromStatus(400, "no"):                                       ExitUsage,
		FromStatus(500, "oh"):                                       ExitError,
		errors.Join(peer.ErrLimit, nil):                             ExitLimit,
		fmt.Errorf("%w", peer.ErrConflict):                          ExitConflict,
		context.Canceled:                                            ExitInterrupted,
	} {
		if got := Exit(err); got != want {
			t.Errorf("Exit(%v) = %d; want %d", err, got, want)
		}
	}
}

// TestCodesAreDistinct: a code stands for one error.
func TestCodesAreDistinct(t *testing.T) {
	seen := map[string]bool{internal: true}
	for _, k := range kinds {
		if seen[k.code] {
			t.Errorf("the code %q stands for two errors", k.code)
		}
		seen[k.code] = true
	}
}

// TestPage: docs/PROBLEMS.md has a section for each code, with its status and
// exit code, and no other.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/PROBLEMS.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		code, text, _ := strings.Cut(section, "\n")
		sections[code] = text
	}
	check := func(code, line string) {
		if !strings.HasPrefix(sections[code], "\n"+line+" ") {
			t.Errorf("the section %q does not begin with %q:%.200s", code, line, sections[code])
		}
		delete(sections, code)
	}
	for _, k := range kinds {
		check(k.code, fmt.Sprintf("Status %d, exit %d.", k.status, k.exit))
	}
	check(internal, fmt.Sprintf("Status 500, exit %d.", ExitError))
	for code := range sections {
		t.Errorf("there is no problem %q", code)
	}
}
