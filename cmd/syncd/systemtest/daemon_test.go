//go:build linux

package systemtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/internal/powercut"
)

// binary is the command, built once for all tests.
var binary string

// unsynced, in the environment, makes the test program become the command,
// with syncs that do nothing; see internal/powercut.
const unsynced = "SYSTEMTEST_UNSYNCED"

var logsDir = flag.String("logs", "", "a folder that is to keep the daemons' logs")

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if program := os.Getenv(unsynced); program != "" {
		fmt.Fprintln(os.Stderr, powercut.Unsynced(program, os.Args[1:]))
		return 1
	}
	dir, err := os.MkdirTemp("", "syncd-system-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "syncd")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the command: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// nameSources tells Go's test cache what the binary is made of: a result is
// served from it only if the files that the test has opened are unchanged, and a
// folder counts as its list of files with their times. Without it a change of the
// command would not run these tests again.
var nameSources = sync.OnceValue(func() error {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "..").Output()
	if err != nil {
		return fmt.Errorf("list the sources of the command: %w", err)
	}
	for _, path := range append(strings.Fields(string(out)), "../../../go.mod", "../../../go.sum") {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
})

// patience is how long a test waits for what must happen soon, on a machine
// that is busy with other tests.
const patience = 5 * time.Minute

// daemon is a process of "syncd serve", which can be killed and started again
// on the same folder and the same port.
type daemon struct {
	t        *testing.T
	name     string
	dir      string // data directory
	socket   string
	port     int
	unsynced bool          // its syncs do nothing from the next start on
	interval time.Duration // between background syncs; 0: never
	flags    []string      // of serve, beside those that all have
	network  *network      // nil: the machine's
	api      *client.Client
	id       string
	process  *exec.Cmd
	log      *stepLog
	restarts int
}

// newDaemon makes a node in dir and starts it.
func newDaemon(t *testing.T, name, dir string) *daemon {
	t.Helper()
	return newDaemonEvery(t, name, dir, 0)
}

// newDaemonEvery makes a node that syncs by itself at about that interval. It may be
// given more flags of serve.
func newDaemonEvery(t *testing.T, name, dir string, interval time.Duration, flags ...string) *daemon {
	t.Helper()
	return newDaemonIn(t, nil, name, dir, interval, flags...)
}

// newDaemonIn makes one in a network of its own.
func newDaemonIn(t *testing.T, in *network, name, dir string, interval time.Duration, flags ...string) *daemon {
	t.Helper()
	if err := nameSources(); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "syncd-") //nolint:usetesting // a socket's path has room for 107 bytes, less than a test's folder takes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	d := &daemon{t: t, name: name, dir: dir, socket: filepath.Join(sockets, "s"), port: freePort(t), interval: interval, flags: flags, network: in}
	d.api = client.New(endpoint.Addr{Network: "unix", Address: d.socket}, "")
	t.Cleanup(func() {
		if d.process != nil {
			d.kill()
		}
		d.api.Close()
	})
	d.start()
	status, err := client.Ask(t.Context(), d.api, api.GetStatus, api.None{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d.id = status.ID
	return d
}

// Ports of daemons: below those that Linux gives to outgoing connections and to
// listeners on port 0 (ip_local_port_range, from 32768). A daemon comes back to
// its port after each kill; one of that range could have been given away.
const firstPort, endPort = 20000, 32768

// freePort is a port of that range on which no program listens. Only a program that
// asks for the very same port can take it before the daemon does, or between a
// kill and a restart; then the daemon says so and the test fails.
func freePort(t *testing.T) int {
	t.Helper()
	var err error
	for range 100 {
		port := firstPort + rand.IntN(endPort-firstPort)
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("no free port among 100 between %d and %d: %v", firstPort, endPort, err)
	return 0
}

func (d *daemon) arguments(arguments ...string) []string {
	return append([]string{"--data-dir", d.dir, "--api", "unix:" + d.socket}, arguments...)
}

// start starts the daemon and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	address := "127.0.0.1"
	if d.network != nil {
		address = d.network.address
	}
	serve := d.arguments("serve", "-v", "--log-format", "json", "--sync-interval", d.interval.String(), "--listen", fmt.Sprintf("/ip4/%s/tcp/%d", address, d.port))
	serve = append(serve, d.flags...)
	d.process = exec.Command(binary, serve...)
	if d.network != nil {
		d.process = d.network.command(binary, serve...)
	}
	if d.unsynced {
		d.process = exec.Command(os.Args[0], serve...)
		d.process.Env = append(os.Environ(), unsynced+"="+binary)
	}
	log, err := d.process.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := d.process.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.log = readSteps(d.kept(log))
	if err := ready(out); err != nil {
		d.t.Fatalf("%s does not answer: %v; its log ends with:\n%s", d.name, err, d.log.tail())
	}
}

// kept is a daemon's log, which goes on to a file, too, if that was asked for.
func (d *daemon) kept(log io.Reader) io.Reader {
	if *logsDir == "" {
		return log
	}
	f, err := os.OpenFile(filepath.Join(*logsDir, d.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	return io.TeeReader(log, f)
}

// ready waits until a daemon says on its standard output that it serves.
func ready(out io.Reader) error {
	heard := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "serves the API") {
				heard <- nil
				return
			}
		}
		heard <- errors.New("it has ended")
	}()
	select {
	case err := <-heard:
		return err
	case <-time.After(patience):
		return fmt.Errorf("it has not said so in %s", patience)
	}
}

// kill ends the process with kill -9 and waits until it is gone and all of its
// log is read.
func (d *daemon) kill() {
	d.t.Helper()
	if err := d.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
	<-d.log.done
	_ = d.process.Wait() // it was killed, and says so
	d.process = nil
}

// restart starts the daemon again after a kill or a power cut.
func (d *daemon) restart() {
	d.t.Helper()
	d.restarts++
	d.start()
}

// stop ends the daemon in order, as a service manager does.
func (d *daemon) stop() {
	d.t.Helper()
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	<-d.log.done
	if err := d.process.Wait(); err != nil {
		d.t.Errorf("%s: after SIGTERM: %v; its log ends with:\n%s", d.name, err, d.log.tail())
	}
	d.process = nil
}

// export is all records, sorted and canonical, with their versions.
func (d *daemon) export() string {
	d.t.Helper()
	var out bytes.Buffer
	if err := d.api.Export(d.t.Context(), api.ExportParams{NSParams: api.OfNS(namespace), Versions: true}, &out); err != nil {
		d.t.Fatalf("%s: %v", d.name, err)
	}
	return out.String()
}

// sync runs a sync with the other daemon.
func (d *daemon) sync(with *daemon) (api.Report, error) {
	return d.api.Sync(d.t.Context(), api.SyncRequest{Peer: with.id, NS: namespace})
}

// namespace is the one that all tests use.
const namespace = "things"

// join makes the namespace on a, and b a member of it.
func join(a, b *daemon) {
	a.t.Helper()
	a.create(nil)
	a.invite(b, "write")
}

// create makes the namespace, which is one shard where no placement is given.
func (d *daemon) create(p *api.Placement) {
	d.t.Helper()
	if _, err := client.Send(d.t.Context(), d.api, api.CreateNamespace, api.NewNamespace{Name: namespace, Placement: p}); err != nil {
		d.t.Fatal(err)
	}
}

// invite makes another daemon a member of the namespace.
func (d *daemon) invite(other *daemon, role string) {
	d.t.Helper()
	ticket, err := client.Send(d.t.Context(), d.api, api.MakeTicket, api.Invitation{NS: namespace, Role: role})
	if err != nil {
		d.t.Fatal(err)
	}
	joined, err := client.Send(d.t.Context(), other.api, api.Join, ticket)
	if err != nil {
		d.t.Fatal(err)
	}
	if joined.Problem != "" {
		d.t.Logf("%s: the first sync: %s", other.name, joined.Problem)
	}
}

// record is one of an export: of no value, a deletion.
type record struct{ Key, Value, Version string }

// recordsOf are those of an export.
func recordsOf(t *testing.T, export string) (all []record) {
	t.Helper()
	for line := range strings.Lines(export) {
		var r struct {
			record
			Value64 []byte
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("export line %.80q: %v", line, err)
		}
		r.Value += string(r.Value64)
		all = append(all, r.record)
	}
	return all
}

// agree has a sync prove that both hold the same, and compares.
func agree(t *testing.T, a, b *daemon) {
	t.Helper()
	if report, err := a.sync(b); err != nil || !report.Verified {
		t.Fatalf("the last sync: %v, report %+v", err, report)
	}
	left, right := strings.SplitAfter(a.export(), "\n"), strings.SplitAfter(b.export(), "\n")
	if len(left) != len(right) {
		t.Fatalf("after a verified sync %s has %d records and %s %d", a.name, len(left), b.name, len(right))
	}
	for i := range left {
		if left[i] != right[i] {
			t.Errorf("after a verified sync %s has\n%s%s has\n%s", a.name, left[i], b.name, right[i])
		}
	}
}
