package wire_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Two messages on a stream, and what a reader makes of them. A frame is its
// length, its kind and its body.
func Example() {
	var stream []byte
	stream = wire.Append(stream, &wire.More{Cells: 300})
	fmt.Printf("More: % x\n", stream)
	stream = wire.Append(stream, &wire.Refuse{Code: wire.CodeBusy, Version: wire.Version})

	in := bytes.NewReader(stream)
	for range 2 {
		message, size, err := wire.Read(in)
		if err != nil {
			fmt.Println(err)
			return
		}
		switch m := message.(type) {
		case *wire.More:
			fmt.Printf("%d bytes: the peer asks for %d cells\n", size, m.Cells)
		case *wire.Refuse:
			fmt.Printf("%d bytes: the peer refuses with code %d of version %d\n", size, m.Code, m.Version)
		}
	}

	_, err := wire.Parse([]byte{byte(wire.KindMore), 0xac, 0x02, 0xff}) // a byte left over
	fmt.Println(errors.Is(err, wire.ErrFrame))
	// Output:
	// More: 03 04 ac 02
	// 4 bytes: the peer asks for 300 cells
	// 5 bytes: the peer refuses with code 3 of version 2
	// true
}
