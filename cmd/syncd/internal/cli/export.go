package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

type exportCmd struct {
	nsArg
	Prefix   string `help:"Only keys that begin with it." placeholder:"P" empty:""`
	After    string `help:"Only keys behind this one: an export that ended early goes on behind its last key." placeholder:"KEY"`
	Key64    bool   `name:"key64" help:"The key of --after is base64."`
	Versions bool   `help:"With versions, and with deleted and expired records."`
}

func (exportCmd) Help() string {
	return `The lines are sorted by the bytes of the keys and have one canonical form: two nodes that hold the same records print the same bytes. Records from a dated import carry their time, records that expire the time when they do. What has expired by this machine's clock is left out, but for an export with versions, which no clock changes. In a namespace of shards an export with versions may differ from node to node for some minutes: each host leaves out deleted records when it has collected them, and another one may hold them still.
When it ends early, what is printed is whole lines, and the error says with which --after the rest follows: in the order of the keys, at any node.

Examples:
    syncd export notes > notes.jsonl
    syncd export notes --versions | sha256sum
    syncd export notes --after orders/4711 >> notes.jsonl`
}

// Run prints the lines.
func (c exportCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	in := api.ExportParams{NSParams: api.OfNS(c.NS), PrefixParams: api.Under(c.Prefix), Versions: c.Versions}
	if c.After != "" {
		after, err := keyArg{Key: c.After, Key64: c.Key64}.bytes()
		if err != nil {
			return err
		}
		in.After = string(after)
	}
	bars := a.bars()
	if progress.IsTerminal(a.stdout.Writer) {
		bars = nil // the lines themselves show how far it is
	}
	bar := bars.Bytes("export "+c.NS, 0) // how much will come is not known
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	err := daemon.Export(ctx, in, io.MultiWriter(out, bar))
	bar.Done()
	if failed := out.Flush(); failed != nil {
		return attempt(failed, "export %q", c.NS)
	}
	if early, ok := errors.AsType[*client.ExportError](err); ok {
		return &hintedError{attempt(err, "export %q", c.NS), "go on with: " + c.again(early.Last)}
	}
	return attempt(err, "export %q", c.NS)
}

// again is the command that goes on behind a key.
func (c exportCmd) again(last []byte) string {
	words := []string{"syncd export", c.NS}
	if c.Prefix != "" {
		words = append(words, "--prefix="+advice.Quote(c.Prefix))
	}
	if c.Versions {
		words = append(words, "--versions")
	}
	if show(last) == string(last) {
		words = append(words, "--after="+advice.Quote(string(last)))
	} else {
		words = append(words, "--key64 --after="+base64.StdEncoding.EncodeToString(last))
	}
	return strings.Join(words, " ")
}
