package reconcile

import (
	"bytes"
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
	creator := bytes.Repeat([]byte{7}, 38)
	keys, control := DeriveKeys(secret, creator), DeriveControlKeys(secret, creator)
	golden.Compare(t, "testdata/keys.txt", fmt.Sprintf("# secret: byte i is i; creator: 38 bytes 07\nnamespace: %x\nkey of the cells: %x\n"+
		"control namespace: %x\nits secret: %x\nits key of the cells: %x\n", keys.ID, keys.Cells, control.ID, control.Secret, control.Cells))
}
