package peer

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/syncd-io/syncd/internal/node"
)

// watchBytes of pages of other hosts wait to be told, of all shards of a watch whose loop is slow. A page
// for which there is no room is asked for again once there is. Beside them are the pages on their way.
const watchBytes = 16 << 20

// watchRoom is the room that the shards of a watch share.
type watchRoom struct {
	*semaphore.Weighted
	most int64
}

func newWatchRoom(most int64) *watchRoom { return &watchRoom{semaphore.NewWeighted(most), most} }

// fits reports whether there is room for a page, which it takes then, until leaveRoom. If not, it waits for
// as much: the page is to be dropped, and asked for again. The error is that of the context.
func (s *shardWatch) fits(ctx context.Context, page *node.WatchPage) (bool, error) {
	if s.room == nil {
		return true, nil
	}
	size := int64(0)
	for i := range page.Told {
		e := &page.Told[i]
		size += recordCost + int64(len(e.Key))
		if e.Record != nil {
			size += int64(e.Record.Weight())
		}
	}
	size = min(size, s.room.most) // one page fits, however large it is
	if size <= s.roomTaken {
		return true, nil
	}
	s.leaveRoom()
	if s.room.TryAcquire(size) {
		s.roomTaken = size
		return true, nil
	}
	*page = node.WatchPage{}
	if s.room.Acquire(ctx, size) != nil {
		return false, context.Cause(ctx)
	}
	s.roomTaken = size
	return false, nil
}

// leaveRoom gives back the room of a page that is told, or does not come.
func (s *shardWatch) leaveRoom() {
	if s.roomTaken > 0 {
		s.room.Release(s.roomTaken)
		s.roomTaken = 0
	}
}
