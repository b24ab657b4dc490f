package badgerdb_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
)

// holdStore is the child process: it opens the folder named in its arguments
// and holds it until its standard input ends.
func holdStore() {
	s, err := badgerdb.Open(os.Args[1], badgerdb.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
	s.Close()
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, dir)
	child.Env = append(os.Environ(), childVariable+"=hold")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := badgerdb.Open(dir, badgerdb.Options{}); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a folder that another process holds gives %v, want ErrLocked", err)
	}
	child.Process.Kill()
	in.Close()
	child.Wait()
	s, err := badgerdb.Open(dir, badgerdb.Options{})
	if err != nil {
		t.Fatalf("after the other process was killed: %v", err)
	}
	defer s.Close()
	if _, err := badgerdb.Open(dir, badgerdb.Options{}); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a folder that this process holds gives %v, want ErrLocked", err)
	}
}

func TestFormat(t *testing.T) {
	dir := t.TempDir()
	s, err := badgerdb.Open(dir, badgerdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	stamp := filepath.Join(dir, "FORMAT")
	good, err := os.ReadFile(stamp)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ stamp, want string }{
		{strings.Replace(string(good), "2", "3", 1), "written by format 3, this program reads format 2; use a newer program"},
		{strings.Replace(string(good), "2", "1", 1), "written by format 1, this program reads format 2; export it"},
		{strings.Replace(string(good), "2", "0", 1), "this program reads format 2"},
		{"", "this program reads format 2"},
		{"something else", "this program reads format 2"},
	} {
		if err := os.WriteFile(stamp, []byte(test.stamp), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := badgerdb.Open(dir, badgerdb.Options{})
		if !errors.Is(err, dbadapter.ErrFormat) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("stamp %q gives %v, want ErrFormat with %q", test.stamp, err, test.want)
		}
	}
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerdb.Open(dir, badgerdb.Options{}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a database without a stamp gives %v, want ErrFormat", err)
	}
	if err := os.WriteFile(stamp, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = badgerdb.Open(dir, badgerdb.Options{}); err != nil {
		t.Fatalf("with its stamp again: %v", err)
	}
	s.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerdb.Open(file, badgerdb.Options{}); err == nil || errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a file as folder gives %v", err)
	}
}
