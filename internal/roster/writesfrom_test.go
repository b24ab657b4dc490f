package roster

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// The least clock from one on at which a writer's versions count is that one, or the beginning
// of the next time in which it may write.
func TestWritesFrom(t *testing.T) {
	l := &List{writers: map[dbadapter.WriterID]ID{1: "a"}, spans: map[ID][]span{"a": {{20, 30}, {5, 9}}}}
	for clock, want := range map[dbadapter.Timestamp]dbadapter.Timestamp{0: 5, 5: 5, 9: 9, 10: 20, 20: 20, 30: 30, 31: 0} {
		got, ok := l.WritesFrom(1, clock)
		if got != want || ok != (want != 0) || ok && !l.MayWrite(1, got) {
			t.Errorf("from %d on: %d, %v, want %d", clock, got, ok, want)
		}
	}
	if got, ok := l.WritesFrom(2, 7); ok {
		t.Errorf("a stranger: %d", got)
	}
}
