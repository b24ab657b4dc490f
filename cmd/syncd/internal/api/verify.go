package api

import (
	"github.com/syncd-io/syncd/peer/status"
)

// Verification is what a verification has read.
type Verification struct {
	Records int64        `json:"records" doc:"how many records were read, tombstones included"`
	Files   bool         `json:"files" doc:"the files of the store were read through, too; false: this kind of store has none that the node could read"`
	Drift   string       `json:"drift,omitempty" doc:"what the node kept of its records and was not theirs; it was put right"`
	Lost    *status.Lost `json:"lost,omitempty" doc:"what damage to the store has cost, until that is accepted; absent if nothing"`
	Missing *Missing     `json:"missing,omitempty" doc:"values that no host gives, of records that the node holds, by placement writer; absent if there are none"`
}

// Missing are values that no host gives.
type Missing struct {
	Count int64 `json:"count"`
	Keys  []Key `json:"keys" doc:"of 100 of them at most"`
	Lost  bool  `json:"lost" doc:"of some of them each member that may hold it has answered"`
}

// VerificationOf describes a verification.
func VerificationOf(v status.Verification, lost *status.Lost) Verification {
	out := Verification{Records: v.Records, Files: v.Files, Drift: v.Drift, Lost: lost}
	if m := v.Missing; m != nil {
		out.Missing = &Missing{Count: m.Count, Lost: m.Lost}
		for _, key := range m.Keys {
			out.Missing.Keys = append(out.Missing.Keys, KeyOf(key))
		}
	}
	return out
}
