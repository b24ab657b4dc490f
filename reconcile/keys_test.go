package reconcile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// TestGoldenKeys pins what a secret stands for: the formulas are in
// docs/protocol, "Hashed numbers".
func TestGoldenKeys(t *testing.T) {
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	creator := bytes.Repeat([]byte{7}, 38)
	keys, control, shard := DeriveKeys(secret, creator), DeriveControlKeys(secret, creator), DeriveShardKeys(secret, creator, 5)
	ask, reply := &wire.Ask{Nonce: wire.Nonce{1}}, &wire.Reply{Nonce: wire.Nonce{2}}
	ProveAsk(keys, []byte{0xa}, []byte{0xb}, ask)
	ProveReply(keys, []byte{0xb}, []byte{0xa}, ask, reply)
	golden.Compare(t, "testdata/keys.txt", fmt.Sprintf("# secret: byte i is i; creator: 38 bytes 07\nnamespace: %x\nkey of the cells: %x\n"+
		"control namespace: %x\nits secret: %x\nits key of the cells: %x\n"+
		"proof in an Ask from 0a to 0b, nonce 01…: %x\nproof in its Reply, nonce 02…: %x\n"+
		"shard 5: %x\nits secret: %x\nits key of the cells: %x\nits topic: %x\n", keys.ID, keys.Cells, control.ID, control.Secret, control.Cells, ask.Proof, reply.Proof, shard.ID, shard.Secret, shard.Cells, shard.Topic))
}
