package backup

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// ErrDamaged: a file of a backup is missing, or is not what was written. It is
// also dbadapter.ErrCorrupt.
var ErrDamaged error = damage{}

type damage struct{}

func (damage) Error() string        { return "the backup is damaged" }
func (damage) Is(target error) bool { return target == dbadapter.ErrCorrupt }

// ErrNoBackup: the folder holds no backup. It is also dbadapter.ErrNotFound.
var ErrNoBackup error = noBackup{}

type noBackup struct{}

func (noBackup) Error() string        { return "no backup is there" }
func (noBackup) Is(target error) bool { return target == dbadapter.ErrNotFound }

// ErrInvalid: the folder is not one that a backup can go into.
var ErrInvalid = errors.New("not a folder for this node's backups")

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrDamaged, path, fmt.Sprintf(format, args...))
}
