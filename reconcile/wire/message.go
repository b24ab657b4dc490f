package wire

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Kind is the first byte of a frame.
type Kind byte

// The kinds of messages.
const (
	KindHello   Kind = 1
	KindWelcome Kind = 2
	KindSame    Kind = 3
	KindMore    Kind = 4
	KindCells   Kind = 5
	KindIndices Kind = 6
	KindOffers  Kind = 7
	KindResult  Kind = 8
	KindAnswer  Kind = 9
	KindRecords Kind = 10
	KindEnd     Kind = 11
	KindRefuse  Kind = 12
	KindWorking Kind = 13
	KindSums    Kind = 14
	KindHashes  Kind = 15
	KindListing Kind = 16
	KindMarks   Kind = 17
	KindHeads   Kind = 18
)

// Message is one of the structs below.
type Message interface {
	// Kind is the byte that tells the messages apart.
	Kind() Kind
	fields(c *codec)
}

// Nonce and Proof authenticate the two sides to one another as holders of the
// namespace's secret.
type (
	Nonce [16]byte
	Proof [32]byte
)

// Hello opens a sync: the initiator proves itself, says what it asks for and what
// it holds, and sends its first cells.
type Hello struct {
	Version   byte // the protocol's
	Mapping   byte // the version of the mapping that places pairs in cells
	Namespace dbadapter.NamespaceID
	Nonce     Nonce
	Proof     Proof
	Direction Direction
	Method    Method
	DryRun    bool // find the differences, move nothing
	// ListsMayDiffer asks the responder to go on although the two sides have
	// different lists of members.
	ListsMayDiffer bool
	Prefix         []byte
	// Span narrows the sync to the records in some ranges; the zero Span does not.
	Span          Span
	dbadapter.Sum // of what the initiator holds
	Greeting      Greeting
	Estimator     rateless.Estimator
	Cells         []rateless.Cell
}

// Welcome answers a Hello: the responder's proof, and what it holds.
type Welcome struct {
	Nonce         Nonce
	Proof         Proof
	dbadapter.Sum // of what the responder holds
	// Greeting is the responder's.
	Greeting Greeting
}

// Same says that both digests are equal; the sync is over.
type Same struct{}

// More asks for the next cells of the sequence.
type More struct{ Cells uint64 }

// Cells carries the next cells of the sequence; the first answer to a More also the
// estimator, if the Hello had no estimator.
type Cells struct {
	Estimator rateless.Estimator
	Cells     []rateless.Cell
}

// Role says what a list of indices means. Initiator and responder are those of
// the sync; either may send a list.
type Role byte

// The roles of an index.
const (
	// Lacking: only the responder holds it; its records follow.
	Lacking Role = 1
	// Wanted: only the initiator holds it and is asked for its records.
	Wanted Role = 2
	// Newer: both hold it with differing checksums, and the responder's
	// records follow since they are newer, or as new to within 64 seconds.
	Newer Role = 3
	// Older: both hold it with differing checksums, and the initiator is
	// asked for its newer records.
	Older Role = 4
	// Fetch: the sender asks for the records it was offered.
	Fetch Role = 5
)

// Indices is a part of a list of indices, in ascending order.
type Indices struct {
	Role    Role
	Indices []dbadapter.Index
}

// Offer is a record without its value: enough to decide whether the value has
// to travel. As a want it names the content that the sender holds already.
type Offer struct {
	Record dbadapter.Record // Value is nil
	Hashed bool             // Hash is set
	Hash   [32]byte         // of the tombstone flag and the value
}

// Offers is a part of a list of offers. Wanting turns it into a request. The sender's
// own records are these, and it wants the receiver's, without the value where the
// content is the same.
type Offers struct {
	Wanting bool
	Offers  []Offer
}

// Result ends the responder's difference plan. Residual is its digest without the records
// under all the indices named before. Told is the hash of what was told of the initiator's
// records under them, and of the number of records left. Bytes is about what the records take
// that it will send, or would. Estimate is the number of differences it expected before it
// asked for cells, if it did.
type Result struct {
	Method   Method
	Residual dbadapter.Digest
	Told     uint64
	Bytes    uint64
	Estimate uint64
}

// Sums has, of each range that the sync is about, in order, the number of its records and
// the words of its digest, XORed. The sync goes on in parts of those that differ.
type Sums struct{ Sums []uint64 }

// Answer is the initiator's residual, sent once it has been found equal.
// Closing says that neither records nor a reply follow. In a dry run one that is not
// closing says that the initiator lists what differs, and the next one ends that.
type Answer struct {
	Residual dbadapter.Digest
	Closing  bool
}

// Sent is a record on its way. Stub says that its value is the one that the
// receiver holds under the same index. Withheld says that the receiver has
// declined the record before, and Why: neither value nor signature travel, but its
// digest.
type Sent struct {
	Record   dbadapter.Record
	Stub     bool
	Withheld bool
	Why      Reason
	Digest   dbadapter.Digest
}

// Records is a batch, which the receiver applies in one transaction.
type Records struct{ Records []Sent }

// Refusal names a received record that was not accepted. Its pair would not do: a
// member can grind several records of one index to one checksum.
type Refusal struct {
	Index  dbadapter.Index
	Digest dbadapter.Digest
	Reason Reason
}

// End closes a side's list of records. Applied counts the records received since this
// side's last End that it now holds because of them; Held its own records that the
// direction of the sync keeps back. Refusals name the records received, or offered,
// that it refused; Collectable counts those of all that it refused, named or not, that
// were not refused for the floor. It counts only tombstones, records that expire, and
// those that arrived too early or found their index full.
type End struct {
	Applied     uint64
	Held        uint64
	Collectable uint64
	Refusals    []Refusal
}

// Reason is why a record was refused.
type Reason byte

// The reasons. A record over a limit is not refused: it does not parse.
const (
	ReasonClock     Reason = 2 // its version lies in the future, or before 2020
	ReasonSignature Reason = 3 // its signature does not fit
	ReasonWriter    Reason = 4 // its writer may not write here, or its key is of another shard
	ReasonFloor     Reason = 5 // not later than what has been collected here, and not held
	ReasonFull      Reason = 6 // as many other keys share its index as may
	ReasonBody      Reason = 7 // its value is a body that may be collected already; of routed writes alone

	// Reasons is greater than each of them.
	Reasons = 8
)

// reasonNames are the reasons in a word, as programs read them.
var reasonNames = [Reasons]string{ReasonClock: "clock", ReasonSignature: "signature", ReasonWriter: "writer", ReasonFloor: "floor", ReasonFull: "full", ReasonBody: "body"}

// Name is the reason in a word; empty for one that is not known.
func (r Reason) Name() string {
	if r >= Reasons {
		return ""
	}
	return reasonNames[r]
}

// String names the reason.
func (r Reason) String() string {
	switch r {
	case 0:
		return "declined in an earlier sync"
	case ReasonClock:
		return "its time lies in the future or before 2020"
	case ReasonSignature:
		return "its signature does not fit"
	case ReasonWriter:
		return "its writer may not write here"
	case ReasonFull:
		return "too many keys share its index there"
	case ReasonBody:
		return "its value was sent too long ago by its writer's clock, and may have been collected: set the clock if it is wrong, and put it anew"
	case ReasonFloor:
		return "it is not later than what has been collected there"
	}
	return "unknown reason"
}

// Code is why a sync was refused or broken off.
type Code byte

// The codes.
const (
	CodeDenied      Code = 1  // no such namespace for this peer
	CodeVersion     Code = 2  // another protocol or mapping version; Version has ours
	CodeBusy        Code = 3  // try again later
	CodeLimit       Code = 4  // a bound was reached
	CodeNotVerified Code = 5  // the residuals differ
	CodeProtocol    Code = 6  // the last message does not fit
	CodeInternal    Code = 7  // the other side failed
	CodeRemoved     Code = 8  // the peer was a member; Statements show how that ended
	CodeListsDiffer Code = 9  // sync the lists of members first
	CodeTwin        Code = 10 // another node that runs has the peer's identity
	CodeTurn        Code = 11 // another peer's records come first; the turn of this one will come
	CodePaused      Code = 12 // a person has paused the namespace, or the peer, there
)

// Refuse ends a sync with a reason. Statements are set exactly if the code is
// CodeRemoved. They are signed statements of the list of members, which show that the
// peer is not a member any more. Each follows those of them that it names.
type Refuse struct {
	Code       Code
	Version    byte
	Statements [][]byte
	Text       string
}

// Working says that its sender computes and has not forgotten the sync. It may
// come at any time after the Hello, and changes nothing else.
type Working struct{}

// Heads asks, in a dry run that lists keys, for the next heads of the responder's
// records that differ, so many of them. They come as Offers; End after fewer of them
// says that there are no more.
type Heads struct{ Count uint64 }

// Kind is the byte that tells the messages apart; so are the next seventeen.
func (*Hello) Kind() Kind   { return KindHello }
func (*Welcome) Kind() Kind { return KindWelcome }
func (*Same) Kind() Kind    { return KindSame }
func (*More) Kind() Kind    { return KindMore }
func (*Cells) Kind() Kind   { return KindCells }
func (*Indices) Kind() Kind { return KindIndices }
func (*Offers) Kind() Kind  { return KindOffers }
func (*Result) Kind() Kind  { return KindResult }
func (*Answer) Kind() Kind  { return KindAnswer }
func (*Records) Kind() Kind { return KindRecords }
func (*End) Kind() Kind     { return KindEnd }
func (*Refuse) Kind() Kind  { return KindRefuse }
func (*Working) Kind() Kind { return KindWorking }
func (*Sums) Kind() Kind    { return KindSums }
func (*Hashes) Kind() Kind  { return KindHashes }
func (*Listing) Kind() Kind { return KindListing }
func (*Marks) Kind() Kind   { return KindMarks }
func (*Heads) Kind() Kind   { return KindHeads }

// kinds makes a message of each kind.
var kinds = [...]func() Message{
	KindHello: of[Hello], KindWelcome: of[Welcome], KindSame: of[Same], KindMore: of[More], KindCells: of[Cells],
	KindIndices: of[Indices], KindOffers: of[Offers], KindResult: of[Result], KindAnswer: of[Answer],
	KindRecords: of[Records], KindEnd: of[End], KindRefuse: of[Refuse], KindWorking: of[Working], KindSums: of[Sums],
	KindHashes: of[Hashes], KindListing: of[Listing], KindMarks: of[Marks], KindHeads: of[Heads],
	KindAsk: of[Ask], KindReply: of[Reply],
}

func of[T any, P interface {
	*T
	Message
}]() Message {
	return P(new(T))
}

// GreetingSize is the length of a Greeting on the wire.
const GreetingSize = 48

// Greeting is what a side says of itself besides what it holds. This package and the
// sync carry it; a node acts upon it.
type Greeting struct {
	// List is the digest of the side's list of members.
	List [16]byte
	// Tau promises that the set of this sync holds every version of the side's
	// own up to here. 0 promises nothing.
	Tau dbadapter.Timestamp
	// Floor is up to where the side has collected tombstones and expired
	// records.
	Floor dbadapter.Timestamp
	// Incarnation is drawn at random each time the side's node starts.
	Incarnation uint64
	// Time is the side's wall clock, in milliseconds since 1970.
	Time uint64
}

// Bounds of everything that a peer can make this side hold at once.
const (
	// Version is the protocol's version byte. Another one is answered with
	// Refuse, which carries ours.
	Version = 2

	// MaxFrame holds one record of the greatest size, with room for its
	// fields and for the batch around it.
	MaxFrame = dbadapter.MaxValue + 1<<16

	// BatchBytes and BatchRecords end a batch of records. Each batch is one transaction
	// and one fsync at the receiver, and must stay below what one Apply takes.
	BatchBytes   = 1 << 19
	BatchRecords = 2048

	// MaxCells is the most cells in one frame: 176 KiB.
	MaxCells = 1 << 14

	// MaxIndices is the most indices in one frame; a delta takes up to 6
	// bytes, so that a full list takes 192 KiB.
	MaxIndices = 1 << 15

	// MaxOffers is the most offers in one frame; an offer takes up to 1.3 KiB, so
	// that a full list takes 640 KiB.
	MaxOffers = 512

	// MaxHeads is the most heads asked for at once: their sender writes them without
	// waiting, and a full answer takes 2.6 MiB.
	MaxHeads = 1 << 11

	// MaxRefusals is the most refused records named in one frame: two batches, in
	// 160 KiB. More are refused without being named, and come again with the next
	// sync.
	MaxRefusals = 1 << 12

	// MaxMarks is the most marks in one frame; a mark takes up to 14 bytes, so that
	// a full list takes 448 KiB.
	MaxMarks = 1 << 15

	// MaxStatement is the most bytes of a statement of a list of members. MaxStatements
	// is how many of them tell a peer of its removal: 256 KiB.
	MaxStatement  = 4 << 10
	MaxStatements = 64

	// MaxText bounds a message for humans: a log line.
	MaxText = 512

	// readStep is how much buffer a frame's announced length is trusted for
	// before its bytes have come.
	readStep = 64 << 10
)
