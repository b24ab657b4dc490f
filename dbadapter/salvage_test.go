package dbadapter_test

import (
	"reflect"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What two namespaces lack is the sum, of which a part that is not known makes the number
// unknown, and of which the keys keep to their bound.
func TestLossPlus(t *testing.T) {
	a := dbadapter.Loss{Records: 2, Keys: [][]byte{[]byte("a")}, SetAside: 1}
	b := dbadapter.Loss{Records: 3, Keys: [][]byte{[]byte("b")}, Kept: 4}
	if sum, want := a.Plus(b), (dbadapter.Loss{Records: 5, Keys: [][]byte{[]byte("a"), []byte("b")}, SetAside: 1, Kept: 4}); !reflect.DeepEqual(sum, want) {
		t.Errorf("%+v; want %+v", sum, want)
	}
	if len(a.Keys) != 1 || !reflect.DeepEqual((dbadapter.Loss{}).Plus(b), b) {
		t.Errorf("the sum has changed %+v, or nothing and %+v is something else", a, b)
	}
	unknown := dbadapter.Loss{Records: -1}
	if x, y := a.Plus(unknown), unknown.Plus(b); x.Records != -1 || y.Records != -1 {
		t.Errorf("with a number that is not known: %d, %d", x.Records, y.Records)
	}
	many := dbadapter.Loss{Records: dbadapter.MaxNamed, Keys: make([][]byte, dbadapter.MaxNamed)}
	if sum := many.Plus(b); len(sum.Keys) != dbadapter.MaxNamed || sum.Records != dbadapter.MaxNamed+3 {
		t.Errorf("%d keys are named of %d records", len(sum.Keys), sum.Records)
	}
}
