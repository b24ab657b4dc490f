package reconcile

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
)

// TestGoldenKeys pins what a secret stands for: the formulas are in
// docs/PROTOCOL.md, "Hashed numbers".
func TestGoldenKeys(t *testing.T) {
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	keys := DeriveKeys(secret)
	golden.Compare(t, "testdata/keys.txt", fmt.Sprintf("# secret: byte i is i\nnamespace: %x\nkey of the cells: %x\n", keys.ID, keys.Cells))
}
