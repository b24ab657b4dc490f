package bfield_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// A list of hosts with one of four risk classes each.
func ExampleBuild() {
	hosts := [][]byte{[]byte("good.example"), []byte("bad.example"), []byte("worse.example")}
	risks := []uint64{0, 2, 3}
	f, err := bfield.Build(bfield.Config{Keys: 3, Values: 4, FalsePositive: 1.0 / (1 << 20)}, keyed.ByteStrings(hosts), risks)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, host := range []string{"bad.example", "worse.example", "unheard.example"} {
		risk, answer := f.Lookup(keyed.Bytes([]byte(host)))
		fmt.Println(host, risk, answer)
	}
	// Output:
	// bad.example 2 found
	// worse.example 3 found
	// unheard.example 0 absent
}

// What 10^9 URLs with a thousand values would take.
func ExamplePlan() {
	p, err := bfield.NewPlan(bfield.Config{Keys: 1e9, Values: 1000, FalsePositive: 1.0 / (1 << 32)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ν %d, κ %d, k %d: %.1f bits a key\n", p.Nu, p.Kappa, p.Hashes, p.PaperBitsPerKey())
	// Output: ν 46, κ 2, k 20: 61.1 bits a key
}

func ExampleEncode() {
	for value := uint64(1); value <= 4; value++ {
		code, err := bfield.Encode(value, 5, 2)
		fmt.Printf("%05b %v\n", code, err)
	}
	// Output:
	// 00011 <nil>
	// 00101 <nil>
	// 00110 <nil>
	// 01001 <nil>
}
