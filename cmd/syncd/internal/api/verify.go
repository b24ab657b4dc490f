package api

import "github.com/syncd-io/syncd/peer"

// Verification is what a verification has read.
type Verification struct {
	Records int64  `json:"records" doc:"how many records were read, tombstones included"`
	Files   bool   `json:"files" doc:"the files of the store were read through, too"`
	Drift   string `json:"drift,omitempty" doc:"what the node kept of its records and was not theirs; it was put right"`
}

// VerificationOf describes a verification.
func VerificationOf(v peer.Verification) Verification { return Verification(v) }
