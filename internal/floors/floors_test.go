package floors

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFloors holds the module's packages to the table.
func TestFloors(t *testing.T) {
	const root = "../.."
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s/go.mod is not that of %s (%v)", root, module, err)
	}
	problems, packages, err := check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	if packages < 3 {
		t.Errorf("only %d packages found: the search is broken", packages)
	}
}

// TestBreaksAreSeen makes each kind of break in a small tree: a check that
// finds nothing there would find nothing in the module either.
func TestBreaksAreSeen(t *testing.T) {
	file := func(imported string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package p\nimport _ \"" + imported + "\"\n")}
	}
	for _, c := range []struct {
		name string
		tree fstest.MapFS
		want string // "" if the tree keeps to the table
	}{
		{"down", fstest.MapFS{"iblt/a.go": file(module + "/internal/keyhash")}, ""},
		{"up", fstest.MapFS{"dbadapter/a.go": file(module + "/peer")}, "imports point down only"},
		{"sideways", fstest.MapFS{"iblt/a.go": file(module + "/dbadapter")}, "imports point down only"},
		{"sideways in a test", fstest.MapFS{"dbadapter/ondisk/a_test.go": file(module + "/dbadapter/internal/disktest")}, ""},
		{"up in a test", fstest.MapFS{"dbadapter/a_test.go": file(module + "/dbadapter/memdb")}, "imports point down only"},
		{"the root", fstest.MapFS{"peer/a.go": file(module)}, "imports point down only"},
		{"no floor", fstest.MapFS{"novel/a.go": file("fmt")}, "no floor"},
		{"import of no floor", fstest.MapFS{"cmd/syncd/a.go": file(module + "/novel")}, "imports point down only"},
		{"floors of the command", fstest.MapFS{"cmd/syncd/internal/httpapi/a.go": file(module + "/peer")}, ""},
		{"an allowed way up in a test", fstest.MapFS{"cmd/syncd/internal/httpapi/a_test.go": file(module + "/cmd/syncd/internal/client")}, ""},
		{"the same in no test", fstest.MapFS{"cmd/syncd/internal/httpapi/a.go": file(module + "/cmd/syncd/internal/client")}, "imports point down only"},
		{"a banned name", fstest.MapFS{"peer/util/a.go": file("fmt")}, "says nothing"},
		{"fence", fstest.MapFS{"peer/a.go": file("github.com/dgraph-io/badger/v4")}, "dbadapter.Store"},
		{"fence in a test", fstest.MapFS{"peer/a_test.go": file("github.com/dgraph-io/badger/v4")}, ""},
		{"behind the fence", fstest.MapFS{"dbadapter/internal/badgerkv/a.go": file("github.com/dgraph-io/badger/v4")}, ""},
		{"test machinery in the product", fstest.MapFS{"peer/a.go": file(module + "/internal/powercut")}, "it is for tests"},
		{"the simulator in the daemon", fstest.MapFS{"cmd/syncd/a.go": file(module + "/cmd/syncd/internal/simulate")}, "the daemon links neither"},
		{"a socket in the core", fstest.MapFS{"reconcile/a.go": file("net")}, "handed in"},
		{"not a socket", fstest.MapFS{"reconcile/a.go": file("net/url")}, ""},
		{"another module", fstest.MapFS{"bench/go.mod": {}, "bench/a.go": file(module + "/peer")}, ""},
		{"testdata", fstest.MapFS{"iblt/testdata/a.go": file(module + "/peer")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems, _, err := check(c.tree)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(problems, "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want one with %q", got, c.want)
			}
		})
	}
}
