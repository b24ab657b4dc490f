// Package directory tells each node of a namespace of shards which keys there are, where the
// namespace has a locator (placement.Rule), so that a key that there is not takes no request. It
// is pure: messages in, messages out; it reads no clock, opens no file or socket, and starts
// nothing. docs/decisions/0052 says why it is made so.
//
// A shard is a *set* here, and its number the *home* of its keys. Of each index under which a set
// holds a key its hosts say a shard, which is the home.
//
// # The feed
//
// A [Host] tells all nodes what the sets say that it hosts: for each index its shard, in
// blocks ([Take], [Block]), and what changes by the log of all of its sets ([Poll], [News]). A
// driver gives it what a set holds when that is settled (Open), each commit (Set), the layout by
// which it is a host (SetLayout), and the messages. Before a poll is answered, each commit up to
// then has been told, in the order of the commits. A poll that asks for it (Poll.Wait) may wait
// while it would be answered without news (Idle), up to MaxWait.
//
// # The locator
//
// A [Locator] is the compressed copy of all sets that each node has, over bfield/locator. It
// polls all hosts of all sets: each of those says what it says, and they are to agree.
//
//	host A of set 7 ──news──► the copy of set 7: a file, and changes over it ──► the index
//	                            ▲ the same sum: attached, and then by its events
//	host B of set 7 ──news──► diff: where B says otherwise than the copy
//
// The copy follows one host. Another is attached once its sum is the copy's; from there on
// each event of either keeps the diff exact, without B's set ever having been sent. So the
// node knows what every host says, for the bytes of one and the events of all. What a key's
// hosts say differently is [OneOf]; it is [Nowhere] only if all hosts are attached, were heard
// within [Fresh], and none has it. A host that hides or invents keys is not attached: the
// node asks where it would else have known, and [Locator.Status] shows that host and the
// others of the set apart.
//
// Where no host's events lead on from the copy, the set is fetched anew, and proved by its
// sum. A copy is on disk with its place in its host's log: after a crash an older one catches
// up, or is fetched anew.
//
// # How a driver uses it
//
//	l, err := directory.New(config)                    // reads the copies on disk
//	l.SetHosts(layout, hosts)                          // of all homes, at first and when they change
//	every second or two, and at once while there is More, for each host:
//	    t := l.Follow(id, wait)                        // polls, and takes of sets
//	    for m := t.Next(now); m != nil; m = t.Next(now) { …; err := t.Answered(answer, now) }
//	if run := l.Work(); run != nil { go run() }        // after a turn, and at the start
//	l.Locate(home, index, now)                         // any time
//	l.Wrote(home, index, shard, now)                   // after an acknowledged write of this node
//	l.Found(home, index, shard, now)                   // after a read that found what the locator did not place
//	l.Save()                                           // before the end
//
// # What is not promised
//
// Nowhere is promised while one of a set's hosts that holds the key is honest and is polled, or
// says nothing; Fresh after the key was durable there. A host says when it was heard by what
// it answers: one that answers with old news hides what is new.
package directory
