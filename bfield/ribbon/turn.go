package ribbon

import "runtime"

// A build keeps all processors busy. Others that could run would each wait until the
// scheduler takes a processor away, which is 10 ms for each worker. So a build gives
// way after so many keys, which take it some 0.2 ms.
const (
	turnKeys    = 1 << 12
	turnBuckets = turnKeys / bucketSlots
)

// giveWay lets others run that wait for a processor.
func giveWay() { runtime.Gosched() }
