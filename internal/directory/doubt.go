package directory

import (
	"fmt"
	"strings"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// Doubt says, for a person, why answers about keys with that home do not rest on what each host of
// their set has said within Fresh: which host was not heard, or tells otherwise. It is empty if they
// do.
func (l *Locator) Doubt(home placement.Shard, now time.Duration) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p := l.parts[home]
	if len(p.hosts) == 0 || l.layout == 0 || p.layout != l.layout {
		return "which hosts the directory has is not known by the layout that counts"
	}
	var all []string
	for _, id := range p.hosts {
		switch h := l.hosts[id]; {
		case !h.ever:
			all = append(all, fmt.Sprintf("%s has not told what is in the directory yet", id))
		case now-h.heard >= Fresh:
			all = append(all, fmt.Sprintf("%s has not told what is new in the directory for %s", id, (now-h.heard).Round(100*time.Millisecond)))
		case h.layout != l.layout:
			all = append(all, fmt.Sprintf("%s goes by another layout", id))
		case p.late(id, h):
			all = append(all, fmt.Sprintf("%s has not told yet what it has taken over from a host of before", id))
		case !p.feeds[id].attached:
			all = append(all, fmt.Sprintf("what %s tells of the directory has not come, or differs from what others tell", id))
		}
	}
	if p.doubt {
		all = append(all, fmt.Sprintf("what %s has told of the directory is being examined", p.doubter))
	}
	return strings.Join(all, "; ")
}
