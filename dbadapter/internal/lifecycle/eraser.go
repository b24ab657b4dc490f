package lifecycle

import (
	"context"
	"errors"
	"log/slog"
)

// Dropped are the namespaces of a store that were dropped, by number. They are kept in
// the store: closing it, or a crash, pauses the eraser, which goes on when the store is
// opened next.
type Dropped interface {
	// Next is the least number above another, 0 if there is no such number.
	Next(ctx context.Context, above uint32) (uint32, error)
	// Erase removes all that stands under a number, piece by piece, and then the
	// number itself.
	Erase(ctx context.Context, number uint32) error
}

// Eraser removes in the background what dropped namespaces leave behind. Make it with
// StartEraser.
type Eraser struct {
	wake chan struct{} // holds one call to look for what was dropped
	stop context.CancelFunc
	done chan struct{} // closed when the goroutine has ended
}

// StartEraser starts an eraser, which looks for what was dropped at once. The log gets
// its failures.
func StartEraser(d Dropped, log *slog.Logger) *Eraser {
	ctx, stop := context.WithCancel(context.Background())
	e := &Eraser{wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	e.Look()
	go e.loop(ctx, d, log)
	return e
}

// Close ends the goroutine, at the latest after one piece.
func (e *Eraser) Close() {
	e.stop()
	<-e.done
}

// Look makes the eraser look for what was dropped.
func (e *Eraser) Look() {
	select {
	case e.wake <- struct{}{}:
	default: // it is about to look
	}
}

func (e *Eraser) loop(ctx context.Context, d Dropped, log *slog.Logger) {
	defer close(e.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		if err := sweep(ctx, d); err != nil && ctx.Err() == nil {
			log.Error("a dropped namespace still takes up room: erasing it failed; the next drop, or opening the store again, tries it again", slog.Any("err", err))
		}
	}
}

// sweep erases all that was dropped, one number after another.
func sweep(ctx context.Context, d Dropped) error {
	var failed error
	for number := uint32(0); ctx.Err() == nil; {
		next, err := d.Next(ctx, number)
		if next == 0 || err != nil {
			return errors.Join(failed, err)
		}
		number = next
		failed = errors.Join(failed, d.Erase(ctx, number))
	}
	return failed
}
