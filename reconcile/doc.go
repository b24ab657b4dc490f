// Package reconcile makes two sets of records equal. It is the sync itself:
// messages in, messages and writes out, without socket, clock or goroutine.
//
//	initiator                                   responder
//	sketch    Hello: digest, first cells  ───▶
//	          ◀───  Welcome: digest             subtract   its own cells from ours
//	          ◀──▶  More, Cells                 peel       until all cells are zero
//	verify    ◀───  the differences, residual   verify
//	fetch     ◀───  records                     fetch
//	apply     Answer: residual, records   ───▶  apply
//	verify    ◀───  what else was missing       verify
//
// A side is a Session, made by Initiate or Respond. Its caller carries frames:
//
//	s := reconcile.Initiate(replica, options)
//	defer s.Close()
//	for {
//		switch e := s.Next(); e.Want {
//		case reconcile.WantSend:
//			conn.Write(e.Frame)
//		case reconcile.WantReceive:
//			m, n, err := wire.Read(conn)
//			// s.Deliver(m, n), or s.Fail(err)
//		case reconcile.WantNothing:
//			return s.Report(), s.Err()
//		}
//	}
//
// What a side holds is a Replica: all answers as of one commit of its store,
// whatever is written meanwhile. Package reconcile/replica makes them of a
// store. What arrives goes through an Admission, which the caller provides.
//
// A sync proves itself. The digest of a set is the sum of its records'
// digests; less those under all decoded indices, both sides must be left with
// the same residual, and nothing is applied before they have compared it
// (docs/PROTOCOL.md, "Proof").
//
// What is not promised: members who know the secret can forge equal digests
// with about 2^32 work; the proof holds among honest members and against all
// others. A decode that does not prove itself ends with ErrNotVerified; it is
// not repaired.
package reconcile
