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

// Bars draws on one terminal. A nil *Bars draws nothing.
type Bars struct{ bars *mpb.Progress }

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
	return &Bars{mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(refresh))}
}

// Bar is one bar. A nil *Bar does nothing.
type Bar struct{ bar *mpb.Bar }

// Spin draws that something is going on, and for how long.
func (b *Bars) Spin(name string) *Bar {
	if b == nil {
		return nil
	}
	return &Bar{b.bars.AddSpinner(0,
		mpb.BarRemoveOnComplete(),
		mpb.BarWidth(1),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)),
	)}
}

// Count draws a bar that counts to total; 0 means that the end is not known.
func (b *Bars) Count(name string, total int64) *Bar {
	if b == nil {
		return nil
	}
	return b.add(name, total, decor.CurrentNoUnit("%d"))
}

// Bytes draws a bar that counts bytes.
func (b *Bars) Bytes(name string, total int64) *Bar {
	if b == nil {
		return nil
	}
	return b.add(name, total, decor.CurrentKibiByte("% .1f"))
}

func (b *Bars) add(name string, total int64, count decor.Decorator) *Bar {
	return &Bar{b.bars.AddBar(total,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), count),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)),
	)}
}

// Add moves the bar by n.
func (b *Bar) Add(n int64) {
	if b != nil {
		b.bar.IncrInt64(n)
	}
}

// Set moves the bar to n.
func (b *Bar) Set(n int64) {
	if b != nil {
		b.bar.SetCurrent(n)
	}
}

// Done takes the bar away.
func (b *Bar) Done() {
	if b != nil {
		b.bar.Abort(true)
	}
}

// Close waits until all bars are drawn; each must be Done.
func (b *Bars) Close() {
	if b != nil {
		b.bars.Wait()
	}
}
