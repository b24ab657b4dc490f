// Package plan is the input of a simulated run: the events, with their nodes and
// times. The same text is a scenario that a person wrote, the record of a run, or
// a failing run that was shrunk and saved.
//
//	# Two nodes cannot hear each other for three seconds.
//	name partition-and-heal
//	nodes 2
//	seed 17
//	net delay=10ms jitter=30ms loss=0.01
//	every 5s
//
//	at 1s put 0 colour "red"
//	at 2s partition 0|1
//	at 3s put 1 colour "blue"
//	at 5s healall
//
//	settle 2m
//	expect converged
//
// # Lines
//
// Empty lines mean nothing, and lines that begin with # are for readers. Those above
// the first other line are the prose of the whole, which a tape keeps. Each setting may
// stand once:
//
//	name WORD           what the scenario is called
//	nodes N             how many nodes, numbered from 0
//	seed N              all random draws of the run follow from it
//	net delay=D jitter=D loss=P duplicate=P reorder=P
//	                    each link: a frame takes delay to delay+jitter, and is
//	                    lost, doubled or overtaken with the probabilities
//	every D             each node syncs with some other about every D; without
//	                    it nodes sync only when told
//	skew D              how far ahead of a node's clock a version may be
//	signed              records are signed by their writers
//	push                nodes push what they write, with the losses of the links
//	checksums N         N bits of a checksum tell records of one minute apart, 1 to 22;
//	                    with few, other contents have equal checksums
//	indices N           keys share so many indices
//	ground WORD         keys that begin with WORD share one index
//	log N               a change log keeps N changes at least, and not many more
//	shards N replicas R placement hash
//	                    the namespace is cut into N shards, each with R hosts
//	alone               only node 0 has the namespace; the others join by events
//	settle D            after the last event all links are healed, all nodes
//	                    started and all clocks right; within D they converge
//	expect …            see [Expect]; may stand more than once
//
// All others are events, "at TIME VERB OPERANDS", in order of time; [Verbs]
// lists them with what they do. The event
//
//	at 2s random writes=200 keys=50 faults=20 for 60s
//
// stands for many, which [Plan.Expand] draws from the seed.
//
// # Limits
//
// limits.go bounds every number; a text that breaks one is refused with the
// number of the line. [Parse] reads back what [Plan.String] prints, to the
// letter.
package plan
