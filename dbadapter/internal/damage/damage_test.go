package damage

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// TestRefusal: no refusal of the system is taken for damage, in whatever form an engine
// hands it on; all else that is not named is.
func TestRefusal(t *testing.T) {
	forms := map[string]func(err error) any{
		"as it is":         func(err error) any { return err },
		"of a path":        func(err error) any { return &os.PathError{Op: "open", Path: "000001.sst", Err: err} },
		"of two paths":     func(err error) any { return &os.LinkError{Op: "rename", Old: "a", New: "b", Err: err} },
		"of a call":        func(err error) any { return os.NewSyscallError("mmap", err) },
		"wrapped":          func(err error) any { return fmt.Errorf("While opening memtable: %w", err) },
		"by its text only": func(err error) any { return fmt.Errorf("While opening memtable: %+v", err) },
		"text of a panic":  func(err error) any { return fmt.Sprintf("MANIFEST sync failed: %v", err) },
	}
	for name, form := range forms {
		for _, errno := range refusals {
			of := form(errno)
			if err, ok := of.(error); ok && Is(err) {
				t.Errorf("%s: %v is damage", name, err)
			}
			err := panicking(of)
			if errors.Is(err, dbadapter.ErrCorrupt) || !errors.Is(err, errno) || !strings.Contains(err.Error(), errno.Error()) {
				t.Errorf("%s: a panic of %v gives %v", name, of, err)
			}
		}
	}
	for _, of := range []any{errors.New("checksum mismatch"), "index out of range", errors.ErrUnsupported} {
		if err, ok := of.(error); ok && !Is(err) {
			t.Errorf("%v is not damage", err)
		}
		if err := panicking(of); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("a panic of %v gives %v", of, err)
		}
	}
}

func panicking(of any) (err error) {
	defer Recovered("database", &err)
	panic(of)
}
