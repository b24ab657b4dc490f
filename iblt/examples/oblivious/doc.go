// Package oblivious selects rows from a table on a server that learns nothing of
// which rows were selected: the paper's application "Oblivious Selection from a
// Table" (section 1.3), as an example.
//
// Alice has outsourced n encrypted rows to a Server, Bob's, which is honest but
// curious. She wants those that match a condition, knows that they are at most
// t, and has no room for so many while she reads. So Bob also keeps the cells of
// an IBLT for t keys, each encrypted on its own. For each row, whether it matches
// or not, she
//
//	reads the row
//	reads, and writes again, the cells that the row's key belongs to
//
// and has added the row to the cells she writes only if it matches. Bob sees
// which cells are touched, but those depend on the key alone; and each write
// is encrypted with a fresh nonce, so that he cannot tell a cell that changed
// from one that was encrypted anew. At last Alice reads the cells and lists the
// rows.
//
// Three things are left out. Bob is honest: he cannot forge or exchange
// ciphertexts unnoticed, but Alice would not notice an older one of the same
// cell. The rows' keys decide the cells, so that Bob learns of two rows that they
// share a cell; he does not learn more than that, since placement is keyed. And
// Alice reads all cells at the end, in order, into her own memory; where she has
// no room for t rows either, the paper lists them by a simulation of oblivious
// RAM, which costs O(t·log² t) accesses.
package oblivious
