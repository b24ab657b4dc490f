//go:build linux

package powercut

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/internal/child"
)

// TestCut writes two files from another process, one synced and one not: after
// the cut the first is whole and the second is not. If the syncs of the process
// do nothing, neither is.
func TestCut(t *testing.T) {
	switch dir := os.Getenv("POWERCUT_WRITE"); {
	case dir == "":
	case os.Getenv("POWERCUT_UNSYNCED") != "":
		if err := os.Unsetenv("POWERCUT_UNSYNCED"); err != nil {
			t.Fatal(err)
		}
		t.Fatal(Unsynced(os.Args[0], os.Args[1:]))
	default:
		write(t, dir)
		return
	}
	t.Run("synced", func(t *testing.T) { cut(t, true) })
	t.Run("unsynced", func(t *testing.T) { cut(t, false, "POWERCUT_UNSYNCED=yes") })
}

func cut(t *testing.T, synced bool, environment ...string) {
	disk := New(t, 32<<20)
	writer := child.Start(t, "TestCut", append(environment, "POWERCUT_WRITE="+disk.Dir())...)
	writer.Expect("written")
	err := disk.Cut(writer.Pid())
	writer.Kill()
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Restore(); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]bool{"synced": synced, "unsynced": false} {
		got, err := os.ReadFile(filepath.Join(disk.Dir(), name))
		if whole := string(got) == text; whole != want {
			t.Errorf("%s: whole = %v after the cut, want %v (%v)", name, whole, want, err)
		}
	}
}

const text = "what was written"

func write(t *testing.T, dir string) {
	for _, name := range []string{"synced", "unsynced"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if name == "unsynced" {
			break
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("written")
	child.Hold() // with the file open
}
