//go:build unix

package badgerkv

import "strings"

// isLockError recognizes Badger's refusal to share a folder, which has no name.
func isLockError(err error) bool {
	return strings.Contains(err.Error(), "Cannot acquire directory lock")
}
