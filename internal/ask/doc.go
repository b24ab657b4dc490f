// Package ask is what members ask one another about a set: what is held under a key, whether two sets are equal,
// and how a member is. [Answer] is what this node answers, from what is durable.
//
// [Explain] says how what this node holds under a key compares with what a member holds, and why: one of the two
// declines a record, has collected it, or no sync has carried it yet.
//
// An [Inquiry] asks many members one question at the same time, those first that are connected.
//
// A wait asks members until as many as are asked for hold a version, or everything that this node held:
//
//	Await   ask, with patience → it is not there yet → sync → ask once more → pause, and again
//
// An answer is the member's own word. Who may ask, and how often, package node decides; it also proves questions and
// answers, and wakes those that wait when a commit may have changed their answer.
package ask
