package directory

import (
	"testing"
	"time"
)

// Where a node has written more keys than it keeps, no key is nowhere until all of them count no longer.
func TestMoreWritesThanAreKept(t *testing.T) {
	r := &recent{}
	now := time.Minute
	for key := range uint64(maxRecent + 1) {
		if r.put(key, 1, now); key < maxRecent/2 && r.lost(now) {
			t.Fatalf("after %d writes some are missing", key+1)
		}
	}
	if _, kept := r.get(0, now); kept || !r.lost(now) || !r.lost(now+2*Fresh-1) {
		t.Errorf("the first one is kept: %t; some are missing: %t", kept, r.lost(now))
	}
	if r.lost(now + 2*Fresh) {
		t.Error("none counts any more, and some are missing")
	}
	d := lone(t)
	d.rounds(40, honest)
	if a := d.node.Locate(0, 5000, d.now); a.Where != Nowhere {
		t.Fatalf("a key that there is not: %+v", a)
	}
	d.node.recent.until = d.now + 1
	if a := d.node.Locate(0, 5000, d.now); a.Where == Nowhere {
		t.Errorf("while some are missing: %+v", a)
	}
}

// What was found goes before a write does.
func TestFoundTakesNoWritesPlace(t *testing.T) {
	r := &recent{}
	for key := range uint64(maxRecent/4 + 1) {
		r.found(key, 1, time.Minute)
	}
	if _, kept := r.get(maxRecent/4-1, time.Minute); !kept {
		t.Error("one is not kept for which there is room")
	}
	if _, kept := r.get(maxRecent/4, time.Minute); kept {
		t.Error("more are kept than there is room for")
	}
	r.put(maxRecent/4, 1, time.Minute)
	if _, kept := r.get(maxRecent/4, time.Minute); !kept || r.lost(time.Minute) {
		t.Error("a write is not kept")
	}
	r.found(maxRecent, 1, time.Minute+2*Fresh+1)
	if _, kept := r.get(maxRecent, time.Minute+2*Fresh+1); !kept {
		t.Error("later there is no room either")
	}
}

// What the base says may be a false positive, and is not sure. What has come since is sure.
func TestSureIsExact(t *testing.T) {
	d := lone(t)
	d.rounds(40, honest)
	d.hosts[honest].Set(0, 5000, 2)
	d.rounds(2, honest)
	if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Sure {
		t.Errorf("a key of the base: %+v", a)
	}
	if a := d.node.Locate(0, 5000, d.now); a.Where != In || !a.Sure {
		t.Errorf("one that has come since: %+v", a)
	}
	d.node.Wrote(0, 5001, 2, d.now)
	if a := d.node.Locate(0, 5001, d.now); a.Where != OneOf || a.Sure {
		t.Errorf("one that this node has written: %+v", a)
	}
}
