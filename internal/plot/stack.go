package plot

import (
	"bytes"
	"fmt"
)

// Stack draws charts below one another as one picture; their frames line up.
func Stack(charts ...*Chart) ([]byte, error) {
	var inner bytes.Buffer
	high := 0
	for _, c := range charts {
		picture, err := c.SVG()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&inner, "<g transform=\"translate(0 %d)\">\n%s</g>\n", high, picture)
		high += c.height()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", width, high, width, high)
	b.Write(inner.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}
