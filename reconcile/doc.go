// Package reconcile makes two sets of records equal. It is the sync itself:
// messages in, messages and writes out, without socket, clock or goroutine.
//
//	initiator                                   responder
//	sketch    Hello: digest, first cells  ───▶
//	          ◀───  Welcome: digest             subtract   its own cells from the initiator's
//	          ◀──▶  More, Cells                 peel       until all cells are zero
//	verify    ◀───  difference plan, residual   verify
//	fetch     ◀───  records                     fetch
//	apply     Answer: residual, records   ───▶  apply
//	verify    ◀───  what else was missing       verify
//
// # Use
//
// A side is a Session, made by Initiate or Respond. Its caller carries frames:
//
//	s := reconcile.Initiate(replica, options)
//	defer s.Close()
//	for {
//		switch e := s.Next(); e.Want {
//		case reconcile.WantSend:
//			conn.Write(e.Frame) // if buffered: flush if e.Flush, and before each read
//		case reconcile.WantReceive:
//			m, n, err := wire.Read(conn)
//			// s.Deliver(m, n), or s.Fail(err)
//		case reconcile.WantNothing:
//			return s.Report(), s.Err()
//		}
//	}
//
// A caller provides three things:
//
//   - A Replica is what the side holds, as of one moment. Package reconcile/replica opens one
//     over a store.
//   - An Admission decides upon the records that arrive, and commits them. With Options.Aside
//     it does so on the caller's goroutines, while the next frame is read and checked.
//   - A Budget bounds the memory of the many sessions that share it. What does not fit fails
//     with ErrBusy.
//
// # Proof
//
// The digest of a set is the sum of its records' digests. Less those under all decoded
// indices, it is the residual. Both sides must be left with the same residual, and nothing is
// applied before they have compared it (docs/protocol, "Proof").
//
// Where the residuals differ, or the cells come to no end, the sides compare what they hold
// range by range. They list what does not agree and compare that exactly (Report.Repair). So
// two contents of one checksum, a damaged sketch or a digest kept wrong hold back no other
// record. Each costs some kilobytes and two round trips.
//
// Report.Verified says that both sets were proved equal but for the differences found, and
// that all of those were exchanged.
//
// # Hostile peers
//
// A responder reads nothing and reserves nothing before the peer has proved that
// it knows the secret. Cells are bounded by the records that both sides announce.
// A record is taken only if its index was told, and its bucket must have the
// checksum that the cells gave. Own records that may have to go back are noted by
// digest and read again. A peer that only says that it is working is cut. Limits
// are in limits.go, attacks and their tests in docs/THREATS.md.
//
// # Limits
//
// Differences of 2^16 and more go in parts, each a sync of its own (parts.go).
//
// The proof holds among honest members, and against all that do not know the secret. A member
// that knows it can make two sets of equal digest with about 2^32 work.
//
// One sync lists the ranges of about 2^18 records. What disagrees beyond that is left for the
// next one, and the sync ends with ErrNotVerified.
//
// # Reading the source
//
// The steps of a sync are listed in order in initiator.go and responder.go. Each step has the
// file of its name: sketch.go, subtract.go, peel.go, fetch.go, apply.go and verify.go.
//
//   - handshake.go proves and greets.
//   - aim.go says how many cells to ask for.
//   - plan.go is the difference plan.
//   - repair.go lists what verify finds to disagree.
//   - parts.go says how a large sync is cut.
//   - heads.go lists the keys in a dry run.
//   - sender.go and receiver.go carry records.
//   - all.go is the method without cells.
//
// The folder testdata/transcripts shows each shape of a sync, message by message.
package reconcile
