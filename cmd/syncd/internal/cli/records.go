package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// keyArg is a key on the command line: any bytes but zero, or base64.
type keyArg struct {
	nsArg
	Key   string `arg:"" help:"The key: any bytes. Begin with -- if it starts with a dash." empty:""`
	Key64 bool   `name:"key64" help:"KEY is base64, for keys that hold zero bytes or that the shell cannot write."`
}

func (k keyArg) bytes() ([]byte, error) {
	key := []byte(k.Key)
	if k.Key64 {
		var err error
		if key, err = base64.StdEncoding.DecodeString(k.Key); err != nil {
			return nil, problem.Usage("the key %q: %w", k.Key, err)
		}
	}
	if len(key) == 0 {
		return nil, problem.Usage("the key is empty; a key has 1 to %d bytes", dbadapter.MaxKey)
	}
	return key, nil
}

// condition are the flags of a conditional write.
type condition struct {
	IfVersion string `help:"Only if the record held has this version." placeholder:"VERSION" xor:"if"`
}

// etag is the version that the record held must have; empty for any.
func (c condition) etag() (string, error) {
	if c.IfVersion == "" {
		return "", nil
	}
	if _, err := dbadapter.ParseVersion(c.IfVersion); err != nil {
		return "", problem.Usage("--if-version: %w", err)
	}
	return `"` + c.IfVersion + `"`, nil
}

type putCmd struct {
	keyArg
	Value    *string        `arg:"" optional:"" help:"The value; - or nothing reads it from standard input."`
	IfAbsent bool           `help:"Only if there is no record, not even a deleted or expired one." xor:"if"`
	TTL      *time.Duration `name:"ttl" help:"The record expires after this time, such as 90s or 720h; at most 100 years. From then on it reads as absent, on each node by that node's clock." placeholder:"D"`
	Ack      string         `help:"Answer once so many hosts of the key's shard hold the record durably: one, quorum (the default), all, or a number. Without shards: a number of members, this node among them; 1 is the default." placeholder:"LEVEL" predictor:"level"`
	condition
}

func (putCmd) Help() string {
	return `Answers once the write is durable, and prints the record's version. If fewer confirm it in time than --ack says, the exit code is 8: the version is printed, and the error says how many have confirmed it. What is written is not undone, and later reads may show it. In a namespace of shards that takes 10 seconds, or less with --timeout. Where no host can be reached nothing is written, and the exit code is 5.
In a namespace of shards with three hosts each, a put at quorum goes on while one of them is down. While two are, it ends with 8: written at one host. In a split cluster the side with a majority of the key's hosts goes on, and the other one is as with two down.
A condition (--if-version, --if-absent) that does not hold is exit code 10.

Examples:
    syncd put notes greeting hello
    syncd put notes pictures/cat.jpg < cat.jpg
    syncd put notes session/17 alice --ttl 12h
    syncd put notes order/4711 paid --ack 3 --timeout 5s
    syncd put notes counter 2 --if-version "$(syncd get notes counter -o json | jq -r .version)"`
}

// Run writes the record.
func (c putCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	key, err := c.bytes()
	if err != nil {
		return err
	}
	in := api.PutParams{RecordParams: api.Record(c.NS, key), Ack: c.Ack}
	if in.IfMatch, err = c.etag(); err != nil {
		return err
	}
	if c.IfAbsent {
		in.IfNoneMatch = "*"
	}
	if c.TTL != nil {
		if *c.TTL <= 0 {
			return problem.Usage("--ttl %s: want a time that is greater than 0", *c.TTL)
		}
		in.TTL = c.TTL.String()
	}
	ctx, cancel := a.leaveTime(ctx, &in.Timeout)
	defer cancel()
	var value []byte
	if c.Value != nil && *c.Value != "-" {
		value = []byte(*c.Value)
	} else if value, err = io.ReadAll(io.LimitReader(&interruptible{ctx: ctx, r: a.stdin}, dbadapter.MaxValue+1)); err != nil {
		return attempt(err, "put %s in %q", show(key), c.NS)
	}
	version, err := daemon.Put(ctx, in, bytes.NewReader(value))
	a.printVersion(version)
	return attempt(err, "put %s in %q", show(key), c.NS)
}

// printVersion prints the version of what was written, if anything was. It stays written where too few have
// confirmed it.
func (a *app) printVersion(version string) {
	if version != "" {
		a.print(map[string]string{"version": version}, func() { a.printf("%s\n", version) })
	}
}

type getCmd struct {
	keyArg
	Read    string `help:"In a namespace of shards: how many hosts of the key's shard must answer: one, quorum (the default), or all." placeholder:"LEVEL" predictor:"level"`
	AtLeast string `help:"Ask further hosts until one has this version or a later one: what a put has printed is read again so." placeholder:"VERSION"`
}

func (getCmd) Help() string {
	return `Prints the value's bytes and nothing else. With -o json, key, value (or value64, base64 where it is not UTF-8), version, and expires if the record does.
A key that is not there, was deleted or has expired, is exit code 4. In a namespace of shards the hosts of the key's shard are asked. Where fewer answer than --read says, what was found is printed (with -o json, answers says how many have answered), and the exit code is 5: the value may be an old one. At quorum one of three hosts may be down.

Examples:
    syncd get notes greeting
    syncd get notes pictures/cat.jpg > cat.jpg
    syncd get notes -- -dash`
}

// recordJSON is a record as get prints it.
type recordJSON struct {
	api.Key
	api.Content
	Version string `json:"version"`
	Expires string `json:"expires,omitempty"`
	Answers string `json:"answers,omitempty"` // too few: "1/3"
}

// Run prints the value.
func (c getCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	key, err := c.bytes()
	if err != nil {
		return err
	}
	o := api.ReadParams{Read: c.Read, AtLeast: c.AtLeast}
	ctx, cancel := a.leaveTime(ctx, &o.Timeout)
	defer cancel()
	value, err := daemon.Get(ctx, c.NS, key, o)
	err = attempt(err, "get %s from %q", show(key), c.NS)
	if value.Version == "" {
		return err
	}
	out := recordJSON{api.KeyOf(key), api.ContentOf(value.Bytes), value.Version, value.Expires, value.Answers}
	a.print(out, func() { a.printf("%s", value.Bytes) })
	return err
}

type delCmd struct {
	keyArg
	Ack string `help:"As in put." placeholder:"LEVEL" predictor:"level"`
	condition
}

func (delCmd) Help() string {
	return `The record becomes a tombstone, which syncs carry to the other members. Prints the tombstone's version, also where fewer hosts than --ack says hold it in time.
A key that is not there is exit code 4; in a namespace of shards the tombstone is written all the same, since a write under way would undo the deletion.

Example:
    syncd del notes greeting`
}

// Run deletes the record.
func (c delCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	key, err := c.bytes()
	if err != nil {
		return err
	}
	in := api.DeleteParams{RecordParams: api.Record(c.NS, key), Ack: c.Ack}
	if in.IfMatch, err = c.etag(); err != nil {
		return err
	}
	ctx, cancel := a.leaveTime(ctx, &in.Timeout)
	defer cancel()
	version, err := daemon.Delete(ctx, in)
	a.printVersion(version)
	return attempt(err, "delete %s from %q", show(key), c.NS)
}

type lsCmd struct {
	nsArg
	Prefix string `help:"Only keys that begin with it." placeholder:"P" empty:""`
	Long   bool   `short:"l" help:"With the size of the value, the version's time and the version."`
}

func (lsCmd) Help() string {
	return `A key a line, in the order of their bytes. Keys with control characters or bytes that are not UTF-8 are quoted as in Go;
-o json gives them as base64 in key64.

Examples:
    syncd ls notes
    syncd ls notes --prefix pictures/ -l`
}

// pageSize is how many keys one request fetches.
const pageSize = 5000

// Run prints the keys, page by page.
func (c lsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	all := []api.KeyInfo{}
	t := a.table("size", "time", "version", "key")
	for cursor := ""; ; {
		page, err := client.Ask(ctx, daemon, api.ListKeys, api.ListParams{NSParams: api.OfNS(c.NS), PrefixParams: api.Under(c.Prefix), Cursor: cursor, Limit: pageSize})
		if err != nil {
			return attempt(err, "list keys of %q", c.NS)
		}
		for _, k := range page.Keys {
			switch {
			case a.json():
				all = append(all, k)
			case c.Long:
				t.row(strconv.Itoa(k.Size), k.Time.Format(time.RFC3339), k.Version, show(k.Bytes()))
			default:
				a.printf("%s\n", show(k.Bytes()))
			}
		}
		if cursor = page.Cursor; cursor == "" || a.stdout.err != nil {
			break
		}
	}
	if c.Long || a.json() {
		a.print(all, t.print)
	}
	return nil
}

type batchCmd struct {
	nsArg
	File string `arg:"" optional:"" default:"-" help:"File of a JSON list; - or nothing reads standard input."`
}

func (batchCmd) Help() string {
	return `The list has at most 4,096 items and 1.5 MiB of values and keys (which count twice):

    [{"key":"a","value":"one","ttl":"24h"},
     {"key":"b","value":"two","if_absent":true},
     {"key64":"/w==","value64":"AAE=","if_version":"VERSION"},
     {"key":"c","delete":true}]

key64 and value64 are base64, for bytes that are not UTF-8. Where a condition does not hold (exit 10), or an item is over a limit (exit 8), nothing is written; items are counted from 0. In a namespace of shards all keys are of one shard, and a quorum of its hosts takes the list. The versions are printed, in the order of the items. If too few hosts confirm it in time, they are, too, and the exit code is 8.

Example:
    syncd batch notes changes.json`
}

// Run sends the list.
func (c batchCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	in := a.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("write a batch: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		in = f
	}
	list, err := io.ReadAll(io.LimitReader(in, api.MaxBatchBody+1))
	if err == nil && len(list) > api.MaxBatchBody {
		err = fmt.Errorf("%w: the list has more than %s", peer.ErrLimit, byteSize(api.MaxBatchBody))
	}
	if err != nil {
		return fmt.Errorf("write a batch: %w", err)
	}
	timeout := ""
	ctx, cancel := a.leaveTime(ctx, &timeout)
	defer cancel()
	versions, err := daemon.Batch(ctx, c.NS, list, timeout)
	err = attempt(err, "write a batch in %q", c.NS)
	if err != nil && len(versions) == 0 {
		return err
	}
	a.print(api.Versions{Versions: versions}, func() {
		for _, v := range versions {
			a.printf("%s\n", v)
		}
	})
	return err
}
