// Package shards reads and writes the records of a namespace that is cut into shards, at the
// hosts of each shard. The loops are straight code over one interface, [Net]: the daemon runs
// them over its streams, and the simulator over its messages.
//
// # Levels
//
// A shard has old hosts and new ones; at rest they are the same ([quorum.Row]). A write goes to
// all hosts of both sets. It is acknowledged by a majority of the old hosts, whole ones, and a
// majority of the new ones. A read at level quorum ends with answers of such majorities, and
// gives the greatest version. So the two meet at one host at least, whatever fails: the read
// finds what was acknowledged before it began.
//
// At level one a write is acknowledged by one host, and a read asks the nearest whole old host.
// At level all both take each host that is neither removed nor lapsed.
//
// # A request
//
//	for each host of the row, beside one another:
//	    ask → it goes by another row → sync the lists, ask once more
//	wait until the answers are enough, a host refuses, or the time is over
//
// A host that goes by another row gives no answer that counts. If the asker's own row gives way,
// the request begins again without its answers. A host that holds something later than a record,
// or something that its writer had not seen, refuses it: the writer makes the record anew, later,
// as one that replaces what was refused for. Nobody completes the write of another.
//
// # Questions and answers
//
// An [Asker] makes the questions to a shard's hosts under one row, and says what their answers mean. [Reply] is
// what this node answers, as a host. Both sides of a question stand in one file: asker.go has that about a record,
// hold.go about a write, pages.go about scans and watches, askbodies.go about large values, feed.go about where
// keys are, and kept.go about what members keep. Only how members are is asked by package ask: cluster.go compares
// what they say of each shard.
//
// # Scans and watches
//
// A scan reads each shard at one whole host, page by page, and merges them by key. A watch follows each
// shard at one whole host. Where that one is away another one tells again what it holds, if the watch had told
// all there was shortly before; else the cursor has expired.
//
// # Large values
//
// By placement writer a large value is a body, in a shard of its writer (package bodies). Callers give and get
// users' values; the loops above put the body before its record, and read it behind that:
//
//	put   body → its shard, record with a pointer → the key's shard, hint → the body's shard
//	get   record, then the body by its key; at level one both from a host of the body, where a locator names its shard
//
// A body that a record names is lost once each member that may hold it has answered, and none has it. Where it
// is missing the record is read again first, since it may have been overwritten.
//
// # A condition
//
// A quorum read finds what the key holds. One host is given that, compares, and commits in one
// transaction; the others follow. So a condition is as good as that one host: where it is slow or
// cut off, two writers can each have one accept, and one of the two writes becomes a conflict
// that is listed.
package shards
