// Package signature verifies Ed25519 signatures, one by one and many at once, and
// makes them.
//
//	ok := signature.VerifyAll([]signature.Check{{Key: key, Message: message, Signature: made}})
//	made := signature.NewSigner(private).SignAll(messages)
//
// # The rule
//
// There is one rule for all signatures, that of ZIP-215 (Daira Hopwood, Jack Grigg and Henry
// de Valence, "Explicitly Defining and Modifying Ed25519 Validation Rules", 2020). A signature
// (R, s) by the key A of a message M is valid if and only if
//
//   - A and R are the encodings of points on the curve, canonical or not;
//   - s is below the order of the base point;
//   - 8·s·B = 8·R + 8·k·A, where k is the SHA-512 of R, A and M as they were given.
//
// The rule of RFC 8032 as crypto/ed25519 has it, without the factor 8, cannot be checked for
// many signatures at once. By a point of small order, a sum of several can be right where one
// of them is not. Members that verify some signatures alone and some together would then hold
// different records for ever. With the factor both ways agree, but for a chance of 2^-128 a
// batch.
//
// The factor costs no security here. It lets in more signatures than crypto/ed25519. Only the
// holder of the key can make those, and may sign the record as it is.
//
// # What is not promised
//
// A record's signature is not a name for it. Two signatures of one record may both be valid,
// and which of them a member holds tells nothing.
package signature
