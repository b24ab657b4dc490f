// Package progress draws bars on a terminal, and nothing elsewhere.
package progress

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bars draws bars on a terminal, one at a time. A nil *Bars draws nothing.
type Bars struct{ w io.Writer }

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// refresh is the pause between two drawings.
const refresh = 100 * time.Millisecond

// New draws on w, if that is a terminal and quiet is not set.
func New(w io.Writer, quiet bool) *Bars {
	if quiet || !IsTerminal(w) {
		return nil
	}
	return &Bars{w}
}

// Bar is one bar. A nil *Bar does nothing.
type Bar struct {
	drawn *mpb.Progress
	bar   *mpb.Bar
}

// Spin draws that something is going on, and for how long.
func (b *Bars) Spin(name string) *Bar {
	return b.draw(name, 0, mpb.SpinnerStyle(), 1, nil)
}

// Count draws a bar that counts to total; 0 means that the end is not known.
func (b *Bars) Count(name string, total int64) *Bar {
	return b.draw(name, total, mpb.BarStyle(), 40, decor.CurrentNoUnit("%d"))
}

// Bytes draws a bar that counts bytes.
func (b *Bars) Bytes(name string, total int64) *Bar {
	return b.draw(name, total, mpb.BarStyle(), 40, decor.CurrentKibiByte("% .1f"))
}

func (b *Bars) draw(name string, total int64, style mpb.BarFillerBuilder, width int, count decor.Decorator) *Bar {
	if b == nil {
		return nil
	}
	drawn := mpb.New(mpb.WithOutput(b.w), mpb.WithRefreshRate(refresh))
	return &Bar{drawn, drawn.New(total, style,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), count),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)),
		mpb.BarWidth(width),
	)}
}

// Add moves the bar by n.
func (b *Bar) Add(n int64) {
	if b != nil {
		b.bar.IncrInt64(n)
	}
}

// Write moves the bar by what is written.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// Set moves the bar to n.
func (b *Bar) Set(n int64) {
	if b != nil {
		b.bar.SetCurrent(n)
	}
}

// Done takes the bar away, and waits until that is drawn.
func (b *Bar) Done() {
	if b != nil {
		b.bar.Abort(true)
		b.drawn.Wait()
	}
}
