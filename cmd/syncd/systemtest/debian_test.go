//go:build linux

package systemtest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// TestDebianIndex is the main job on real input: the index of Debian's
// packages, tens of thousands of stanzas, name → stanza, goes into one daemon;
// an empty second one is synced from it; then records are removed, added and
// changed on each side, and a sync makes the exports of both equal, byte for
// byte.
func TestDebianIndex(t *testing.T) {
	index := debianIndex(t)
	a := newDaemon(t, "a", t.TempDir())
	b := newDaemon(t, "b", t.TempDir())
	join(a, b)

	a.importLines(index.lines(index.names))
	first := b.syncNow(a)
	if first.Method != "all" || first.Applied != len(index.names) {
		t.Errorf("the empty node was filled by method %s with %d of %d records", first.Method, first.Applied, len(index.names))
	}
	exportA, exportB := a.command(nil, "export", namespace), b.command(nil, "export", namespace)
	if !bytes.Equal(exportA, exportB) {
		t.Fatal("the exports differ after the first sync")
	}
	if n := bytes.Count(exportA, []byte("\n")); n != len(index.names) {
		t.Fatalf("%d records exported of %d", n, len(index.names))
	}

	// Some hundreds of each kind on each side, all of different packages.
	const kinds, each = 4, 300 // two to remove, two to change
	seed := uint64(1)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	names := slices.Clone(index.names)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:kinds*each]
	for i, d := range []*daemon{a, b} {
		removed, changed := names[:each], names[each:2*each]
		names = names[2*each:]
		for _, name := range removed {
			if _, err := d.api.Delete(t.Context(), api.DeleteParams{RecordParams: api.Record(namespace, []byte(name))}); err != nil {
				t.Fatal(err)
			}
		}
		edit := debian{stanzas: map[string]string{}}
		for _, name := range changed {
			edit.stanzas[name] = index.stanzas[name] + "X-Changed-By: " + d.name + "\n"
		}
		added := make([]string, each)
		for n := range added {
			added[n] = fmt.Sprintf("new-by-%s-%d", d.name, n)
			edit.stanzas[added[n]] = index.stanzas[index.names[(i+2)*n]]
		}
		d.importLines(edit.lines(slices.Concat(changed, added)))
	}

	second := b.syncNow(a)
	if second.MissingHere != each || second.MissingThere != each || second.Mismatched != kinds*each {
		t.Errorf("found %d missing here, %d there, %d mismatched; %d, %d and %d were made",
			second.MissingHere, second.MissingThere, second.Mismatched, each, each, kinds*each)
	}
	exportA, exportB = a.command(nil, "export", namespace), b.command(nil, "export", namespace)
	if !bytes.Equal(exportA, exportB) {
		t.Fatal("the exports differ after the second sync")
	}
	if n, want := bytes.Count(exportA, []byte("\n")), len(index.names)-2*each+2*each; n != want {
		t.Errorf("%d records exported, not %d", n, want)
	}
	if n := bytes.Count(exportA, []byte("X-Changed-By: ")); n != 2*each {
		t.Errorf("%d changed stanzas, not %d", n, 2*each)
	}
	t.Logf("%d packages, %d bytes; then %d differences found in %d round trips with %d sketch bytes, %d bytes in all",
		len(index.names), len(exportA), second.Differences(), second.Rounds, second.SketchBytes,
		second.WireBytesSent+second.WireBytesReceived)

	// Importing the same again makes no new versions.
	a.importLines(index.lines(index.names[:5000]))
	a.importLines(exportA)
	if third := b.syncNow(a); third.MissingHere+third.MissingThere != 0 {
		t.Errorf("importing what is there has made %+v", third)
	}
}

// debian is an index of packages: the stanza of each name.
type debian struct {
	names   []string // sorted
	stanzas map[string]string
}

// debianIndex is what apt knows.
func debianIndex(t *testing.T) debian {
	t.Helper()
	out, err := exec.Command("apt-cache", "dumpavail").Output()
	if err != nil {
		t.Fatalf("apt-cache dumpavail: %v; this test needs Debian's package index: run apt-get update", err)
	}
	index := debian{stanzas: map[string]string{}}
	stanzas := bufio.NewScanner(bytes.NewReader(out))
	stanzas.Buffer(nil, 1<<20)
	stanzas.Split(splitStanza)
	for stanzas.Scan() {
		stanza := stanzas.Text()
		name, _, _ := strings.Cut(strings.TrimPrefix(stanza, "Package: "), "\n")
		if _, twice := index.stanzas[name]; !twice {
			index.names = append(index.names, name)
		}
		index.stanzas[name] = stanza
	}
	if err := stanzas.Err(); err != nil {
		t.Fatal(err)
	}
	if len(index.names) < 10_000 {
		t.Fatalf("Debian's package index has %d packages here; run apt-get update", len(index.names))
	}
	slices.Sort(index.names)
	return index
}

func splitStanza(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
		return i + 2, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// lines are the stanzas of some packages as lines to import.
func (index debian) lines(names []string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, name := range names {
		line := map[string]string{"key": name}
		if stanza := index.stanzas[name]; utf8.ValidString(stanza) {
			line["value"] = stanza
		} else {
			line["value64"] = base64.StdEncoding.EncodeToString([]byte(stanza))
		}
		if err := encoder.Encode(line); err != nil {
			panic(err) // strings always encode
		}
	}
	return out.Bytes()
}

// command runs the command against the daemon and returns what it prints.
func (d *daemon) command(input []byte, arguments ...string) []byte {
	d.t.Helper()
	c := exec.Command(binary, d.arguments(arguments...)...)
	c.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		d.t.Fatalf("%s: syncd %s: %v\n%s", d.name, strings.Join(arguments, " "), err, stderr.Bytes())
	}
	return out
}

// importLines imports lines from a file, as a user would.
func (d *daemon) importLines(lines []byte) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "lines")
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.command(nil, "import", namespace, file)
}

// syncNow is a sync by the command, which must prove itself.
func (d *daemon) syncNow(with *daemon) api.Report {
	d.t.Helper()
	var report api.Report
	out := d.command(nil, "sync", with.id, "--ns", namespace, "-o", "json")
	if err := json.Unmarshal(out, &report); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	if !report.Verified {
		d.t.Fatalf("not verified: %+v", report)
	}
	return report
}
