package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

type watchCmd struct {
	nsArg
	Since  string `help:"Begin behind the event with this cursor; start: with what is held; -: the cursor is read from standard input. Default: now." placeholder:"CURSOR"`
	Prefix string `help:"Only keys that begin with it." placeholder:"P" empty:""`
	Count  int    `help:"End after so many changes; 0 means never." placeholder:"N"`
}

func (watchCmd) Help() string {
	return `A line for each change, whoever wrote it, in the order in which this node has taken them: put KEY VALUE, delete KEY, expired KEY, gone KEY (the node has forgotten that it was deleted), and a * before KEY where earlier changes of the key were passed over. It tells what a key holds, not each write. It goes on until it is interrupted, or --timeout is over.

expired KEY follows when a record of which the watch has told expires, for up to 1,024 keys at a time. What was put before the watch began, or is in a namespace of shards, is gone when it is collected, without that line.

-o json prints a JSON object a line, each with its cursor: --since goes on behind it, also when the daemon has been started again. An object of the kind at has no key: all up to its cursor has been told, as after what is held with --since start. Where the daemon goes away, the watch waits for it and goes on where it was.

A cursor expires when the daemon no longer keeps the changes behind it (serve --watch-log), or was restored from a backup: exit code 4. Then watch with --since start.

Examples:
    syncd watch notes
    syncd watch notes --prefix orders/ --count 1      # until one of them changes
    syncd watch notes --since start -o json | jq -r 'select(.kind == "put") | .key'
    syncd watch notes --since "$(tail -n 1 events.jsonl | jq -r .cursor)" -o json >> events.jsonl`
}

// watchPause is between two looks for a daemon that is away.
const watchPause = time.Second

// Run prints the events.
func (c watchCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	since, begun, away, left := c.Since, false, false, c.Count
	if since == "-" { // that of many shards is too long for a command line
		in, err := io.ReadAll(io.LimitReader(&interruptible{ctx: ctx, r: a.stdin}, api.MaxWatchBody))
		if err != nil {
			return attempt(err, "read the cursor")
		}
		if since = strings.TrimSpace(string(in)); since == "" {
			return problem.Usage("standard input has no cursor")
		}
	}
	for {
		err := daemon.Watch(ctx, c.NS, since, []byte(c.Prefix), func(e *api.Event) error {
			if away {
				a.remark("the daemon is back")
			}
			since, begun, away = e.Cursor, true, false
			a.printEvent(e)
			if e.Kind != peer.EventAt.String() {
				if left--; left == 0 {
					return errEnough
				}
			}
			return a.stdout.err
		})
		switch {
		case errors.Is(err, errEnough):
			return nil
		case !begun || ctx.Err() != nil || !errors.Is(err, problem.ErrNoDaemon) && !errors.Is(err, peer.ErrClosed):
			return attempt(err, "watch %q", c.NS)
		case !away:
			a.remark("the daemon is away; the watch goes on when it is back")
		}
		away = true
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
	}
}

// errEnough ends a watch that was to print so many changes.
var errEnough = errors.New("enough")

func (a *app) printEvent(e *api.Event) {
	mark, value := "", ""
	if e.Coalesced {
		mark = "* "
	}
	switch {
	case a.json():
		a.printLine(e)
		return
	case e.Kind == peer.EventAt.String():
		return
	case e.Kind == peer.EventPut.String():
		value = " " + showValue(e.Content.Bytes())
	}
	a.printf("%s %s%s%s\n", e.Kind, mark, show(e.Key.Bytes()), value)
}

// showValue writes a value as show does a key, and no more of it than fits on a line.
func showValue(value []byte) string {
	if len(value) <= maxShown {
		return show(value)
	}
	return show(value[:maxShown]) + "…"
}
