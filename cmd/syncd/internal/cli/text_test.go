package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
)

func FuzzReadTicket(f *testing.F) {
	f.Add([]byte("syncd1abc\n"))
	f.Add([]byte("two words"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, in []byte) {
		ticket, err := readTicket(bytes.NewReader(in))
		if err != nil {
			if !errors.Is(err, problem.ErrUsage) {
				t.Fatalf("error %v; want a usage error", err)
			}
			return
		}
		if ticket != strings.TrimSpace(string(in)) || len(strings.Fields(ticket)) != 1 {
			t.Fatalf("%q was read as %q", in, ticket)
		}
	})
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a b/é": "a b/é", "": `""`, "\xff": `"\xff"`, "a\nb": `"a\nb"`, `"q"`: `"\"q\""`, "\x1b[31m": `"\x1b[31m"`,
	} {
		if got := show([]byte(in)); got != want {
			t.Errorf("show(%q) = %s; want %s", in, got, want)
		}
	}
	if got := show(bytes.Repeat([]byte("k"), 5000)); len(got) > 300 || !strings.Contains(got, "5000 bytes") {
		t.Errorf("a long key is shown as %s", got)
	}
}

// TestProgramOfAMember: what a member says of itself draws no lines and moves no cursor.
func TestProgramOfAMember(t *testing.T) {
	var out bytes.Buffer
	a := &app{globals: &globals{}, stdout: &output{Writer: &out}}
	ns := api.NamespaceStatus{Cluster: []api.ClusterMember{
		{ClusterMember: status.ClusterMember{ID: "one", Program: "v1\n\x1b[2Jtwo"}, Reachable: true},
		{ClusterMember: status.ClusterMember{ID: "three", Program: "v1.2-dirty"}, Reachable: true},
	}}
	a.printCluster(&ns)
	if text := out.String(); strings.Count(text, "\n") != 3 || strings.Contains(text, "\x1b[2J") || !strings.Contains(text, "  v1.2-dirty\n") {
		t.Errorf("it prints %q", text)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                         "plain",
		"all dials failed\n  * [a] b\n": "all dials failed; [a] b",
		"a:\n\nb; \nc":                  "a; b; c",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestClockTroubles(t *testing.T) {
	ns := api.Namespace{Namespace: status.Namespace{Name: "notes"}}
	if got := clockTroubles(&ns); len(got) != 0 {
		t.Errorf("a clock that is right: %q", got)
	}
	ns.Ahead, ns.Declined = "24h0m0s", []status.DeclinedBy{{Peer: "12D3", Records: 3}}
	got := strings.Join(clockTroubles(&ns), "\n")
	for _, want := range []string{"by 24h0m0s", "syncd restamp notes", "3 records declined by peer " + status.ID("12D3").String() + ": their times are ahead of its clock; is this machine's clock right?"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestShownSize(t *testing.T) {
	for in, want := range map[int64]string{0: "0 B", 9999: "9999 B", 10240: "10.0 KiB", 20 << 20: "20.0 MiB"} {
		if got := size(in); got != want {
			t.Errorf("size(%d) = %s; want %s", in, got, want)
		}
	}
}

func TestCountOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 records", 1: "1 record", 2: "2 records"} {
		if got := countOf(n, "record"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestExportAgain: the command that goes on behind a key is one that a shell reads as it is meant.
func TestExportAgain(t *testing.T) {
	c := exportCmd{nsArg: nsArg{"notes"}, Prefix: "it's", Versions: true}
	for key, want := range map[string]string{
		"it's 1":   `syncd export notes --prefix='it'\''s' --versions --after='it'\''s 1'`,
		"it's\x00": `syncd export notes --prefix='it'\''s' --versions --key64 --after=aXQncwA=`,
	} {
		if got := c.again([]byte(key)); got != want {
			t.Errorf("behind %q: %s; want %s", key, got, want)
		}
	}
}
