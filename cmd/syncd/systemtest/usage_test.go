//go:build linux

package systemtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processorTime is what a process has taken of the processors.
func processorTime(t *testing.T, pid int) (took time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, ticks := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))[12:14] {
		n, err := strconv.Atoi(ticks)
		if err != nil {
			t.Fatal(err)
		}
		took += time.Duration(n) * 10 * time.Millisecond
	}
	return took
}

// metric is the sum of a metric over its labels, of those that have one like result="sure"
// if it is given; 0 before it was counted for the first time.
func (d *daemon) metric(name string, with ...string) (sum float64) {
	d.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.socket)
	}}}
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://daemon/metrics", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		d.t.Fatalf("%s: %v", d.name, err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		label, value, _ := strings.Cut(lines.Text(), " ")
		before, labels, _ := strings.Cut(label, "{")
		if before != name || slices.ContainsFunc(with, func(one string) bool { return !strings.Contains(labels, one) }) {
			continue
		}
		if i := strings.LastIndexByte(lines.Text(), ' '); i >= 0 {
			value = lines.Text()[i+1:]
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		sum += v
	}
	return sum
}
