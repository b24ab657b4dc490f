// Package route decides how a node reads and writes a record of a shard that others
// hold: which of the shard's hosts it asks, in what order, when it asks a second one,
// when an answer is final, and when it says that there is none. It has no clock, no
// network and no goroutine; a driver carries out what it says, and so does a simulator.
//
//	get := route.NewGet(&times, candidates, route.GetOptions{Deadline: now + 10*time.Second}, now)
//	for step := get.Next(now); step.Do != route.Over; step = get.Next(now) {
//		// Ask: send a request to step.Peer, and go on. Wait: until step.Until, or until a
//		// request ends: tell get.Answered or get.Failed, and go on.
//	}
//	found, err := get.Result(now)
//
// Times are read from one clock that only goes forward, as the time since any moment.
//
// # Reading
//
// A host is *settled* once it has been found equal with a node that held the shard before
// it, and *current* while it was found equal lately with each other one that may hold it. The
// record that a current host gives is final. That there is none is confirmed by a second one,
// where one can be reached: what was written just now may be at the other host
// alone, and a host that hides what it holds only makes a look-up slower. While a host has
// not answered, and has not failed, it is not said to be sure. What a host that is not
// current answers may be too little, so further hosts are asked; what a settled one holds is
// sure all the same once each candidate has answered. Otherwise the greatest of the records heard is given, or that there is none, and either
// is said not to be sure. Where no host answers, the record is unavailable.
//
// The nearest host is asked first ([Times]). The next one is asked at once where a host
// refuses, cannot be reached or is not current; and beside it, as a hedge (Dean and
// Barroso, "The tail at scale", 2013), where its answer takes longer than 95 of 100 did.
// Hedges are at most one in 32 requests, with a small burst: a shard whose hosts have all
// become slow is not asked twice as much. A request that takes longer than [Overdue] is one
// beside which the next host is asked, as often as one in 8 requests, and always after
// [Abandoned]. Where parts of an answer come ([Get.Delivers]), the time counts from the last.
//
// # Writing
//
// A record goes to all hosts of its shard at once, and is acknowledged once as many of
// them as [Ack] asks for hold it durably. A host that cannot be reached is tried again
// until the time is over. A host that holds another version, which the writer had not seen,
// ends it: the caller makes a version above that one, which names it. A host that declines says why; the write ends as soon as too few
// hosts are left.
//
// # What it does not promise
//
// Two reads of one key, one after the other, may be answered by two hosts, of which one
// has not heard yet what the other holds. A read says nothing about writes that are under
// way.
package route
