package plot

import (
	"bytes"
	"fmt"
	"testing"
)

func TestStack(t *testing.T) {
	small := &Chart{Title: "small", Height: 200}
	picture, err := Stack(sample(), small)
	if err != nil {
		t.Fatal(err)
	}
	count(t, picture) // it is XML
	for _, c := range []*Chart{sample(), small} {
		alone, err := c.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(picture, alone) {
			t.Errorf("%s is not drawn as it is alone", c.Title)
		}
	}
	h := sample().height()
	if h <= 400 { // a legend is above the frame
		t.Fatalf("the first is %d high", h)
	}
	for _, want := range [][]byte{
		fmt.Appendf(nil, `width="660" height="%d"`, h+200), fmt.Appendf(nil, `translate(0 %d)`, h),
	} {
		if !bytes.Contains(picture, want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	if _, err := Stack(small, &Chart{X: Axis{From: 2, To: 1}}); err == nil {
		t.Error("a chart that cannot be drawn is passed over")
	}
}
