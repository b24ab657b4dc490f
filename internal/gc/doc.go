// Package gc collects what all members of a namespace hold to be deleted, or to have
// expired. Package watermark says what that is; this one keeps that durable, tells it
// the members, and takes the records out.
//
//	g := gc.New(config)                  // of an open set
//	err := g.Start(state, follow)        // with what is durable
//	swept, err := g.Tend(ctx)            // now and then: a pledge, and a sweep, if they are due
//
//	greeting, err := g.Greet(ctx, lists) // a sync begins: a reading of the clock, and the floor
//	verdict, err := g.Synced(&sync, greeting.Tau, declined, writes)
//
// What a collector says is durable first: a reading of the clock, so that no version
// is made up to it after a restart; a promise, before the pledge is written; and the
// floor, before the first record leaves. Where that fails the second step is not
// done.
//
// A sweep reads all records. It collects what is not later than the watermark, and
// deals with the records of writers that have lost the right to write, as a [Judge]
// says. It takes no more than a twentieth of the time.
//
// A collector knows no network and no other set. [Config] hands in the store, the clock and
// the group, whose control namespace has the pledges.
package gc
