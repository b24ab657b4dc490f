// Package oblivious selects rows from a table on a server that learns nothing of
// which rows were selected. It is an example: the paper's application "Oblivious
// Selection from a Table" (section 1.3).
//
// Alice has outsourced n encrypted rows to a Server, Bob's, which is honest but
// curious. She wants those that match a condition. She knows that they are at most
// t, and has no room for so many while she reads. So Bob also keeps the cells of
// an IBLT for t keys, each encrypted on its own. For each row, whether it matches
// or not, she
//
//	reads the row
//	reads, and writes again, the cells that the row's key belongs to
//
// and has added the row to the cells she writes only if it matches. Bob sees
// which cells are touched, but those depend on the key alone. Each write is
// encrypted with a fresh nonce, so he cannot tell a cell that changed from one
// that was encrypted anew. At last Alice reads the cells and lists the rows.
//
// Three things are left out:
//
//   - Bob is honest. He cannot forge or exchange ciphertexts unnoticed, but Alice
//     would not notice an older one of the same cell.
//   - The rows' keys decide the cells, so Bob learns that two rows share a cell. He
//     does not learn more than that, since placement is keyed.
//   - Alice reads all cells at the end, in order, into her own memory. Where she has
//     no room for t rows, the paper lists them by a simulation of oblivious RAM,
//     which costs O(t·log² t) accesses.
package oblivious
