//go:build unix

// Package pgserver starts a PostgreSQL server for a test, of the binaries that
// Debian's package postgresql brings:
//
//	server := pgserver.Start(t)
//	store, err := pgdb.Open(ctx, server.URL(), pgdb.Options{})
//	server.Crash() // kill -9 of all its processes
//	server.Run()   // again, over the same files
//
// The server has a folder of its own, listens on a unix socket there and on nothing
// else, and ends with the test. PostgreSQL refuses to run as root: a test that
// root starts runs the server as the system user "postgres", or else as "nobody". Where the package is
// absent, the test is skipped, and says so on standard error too.
package pgserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a server, or the files of one that is down.
type Server struct {
	t       testing.TB
	bin     string
	dir     string // holds the data and the socket
	as      *syscall.Credential
	process *exec.Cmd // nil: it is down
	said    *bytes.Buffer
}

// patience is how long a server may take to start on a busy machine; after a crash
// it replays its log.
const patience = time.Minute

// binaries finds the newest server, "" if there is no server.
func binaries() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		if path, err := exec.LookPath("postgres"); err == nil {
			return filepath.Dir(path)
		}
		return ""
	}
	return filepath.Dir(found[len(found)-1]) // Glob sorts them, and all have two digits
}

// Start makes a server in a new folder and starts it. The settings of the form
// name=value are added to its configuration.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{t: t, bin: binaries()}
	if s.bin == "" {
		fmt.Fprintf(os.Stderr, "SKIPPED: %s needs PostgreSQL; install it: apt-get install postgresql\n", t.Name())
		t.Skip("PostgreSQL is not installed; install it: apt-get install postgresql")
	}
	var err error
	// In memory, where there is such a folder: waiting for the disk costs nothing there, and
	// a server that is killed loses no more.
	if s.dir, err = os.MkdirTemp("/dev/shm", "pg"); err != nil { //nolint:usetesting // the paths of t.TempDir are too long for sockets, and closed to other users
		s.dir, err = os.MkdirTemp("", "pg") //nolint:usetesting // as above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	s.dropRoot()
	s.run("initdb", "--no-sync", "--auth=trust", "--username=syncd", "--encoding=UTF8", "--locale=C", "--pgdata="+s.data())
	config, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range append([]string{
		"listen_addresses=''", "unix_socket_directories='" + s.dir + "'", "max_connections=200", "shared_buffers=64MB", "logging_collector=off",
	}, settings...) {
		fmt.Fprintln(config, setting)
	}
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Run()
	return s
}

// dropRoot chooses a user to run as, if we are root, and gives it the folder.
func (s *Server) dropRoot() {
	if os.Getuid() != 0 {
		return
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(found.Uid)
	gid, _ := strconv.Atoi(found.Gid)
	s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
	if err := os.Chown(s.dir, uid, gid); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command is a program of PostgreSQL's, in a process group of its own.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), arguments...)
	c.Dir = s.dir
	c.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return c
}

func (s *Server) run(name string, arguments ...string) {
	s.t.Helper()
	if out, err := s.command(name, arguments...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Run starts the server, and returns when it takes connections.
func (s *Server) Run() {
	s.t.Helper()
	s.said = &bytes.Buffer{}
	s.process = s.command("postgres", "-D", s.data())
	s.process.Stdout, s.process.Stderr = s.said, s.said
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !s.ready(ctx) {
		if ctx.Err() != nil {
			s.Crash()
			s.t.Fatalf("the server does not start:\n%s", s.said)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ready reports whether the server takes connections: it says so (R, an
// authentication request) rather than that it is starting up (E).
func (s *Server) ready(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Socket())
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	startup := "\x00\x03\x00\x00user\x00syncd\x00database\x00postgres\x00\x00"
	if _, err := conn.Write(append([]byte{0, 0, 0, byte(len(startup) + 4)}, startup...)); err != nil {
		return false
	}
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	return err == nil && answer[0] == 'R'
}

// URL is the connection string of the server's database.
func (s *Server) URL() string { return URL(s.dir) }

// URL is the connection string of a server whose socket is in a folder.
func URL(dir string) string {
	u := url.URL{Scheme: "postgres", User: url.User("syncd"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}
	return u.String()
}

// SocketName is the name of a server's socket within its folder.
const SocketName = ".s.PGSQL.5432"

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, SocketName) }

// Crash ends all processes of the server by a signal that they cannot handle, and
// waits until they are gone.
func (s *Server) Crash() {
	if s.process == nil {
		return
	}
	pid := s.process.Process.Pid
	// Each process is in a session of its own; all are children of the first.
	listed, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = s.process.Process.Kill()
	var left []int
	for _, field := range strings.Fields(string(listed)) {
		if child, err := strconv.Atoi(field); err == nil && syscall.Kill(child, syscall.SIGKILL) == nil {
			left = append(left, child)
		}
	}
	_ = s.process.Wait() // it was killed, and says so
	s.process = nil
	for until := time.Now().Add(patience); len(left) > 0; {
		left = slices.DeleteFunc(left, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
		if time.Now().After(until) {
			s.t.Fatalf("processes %v of the server do not end", left)
		}
		time.Sleep(time.Millisecond)
	}
}

// Stop ends the server in order; its clients are disconnected.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGINT) // fast shutdown
	ended := time.AfterFunc(patience, func() { _ = s.process.Process.Kill() })
	_ = s.process.Wait()
	ended.Stop()
	s.process = nil
}
