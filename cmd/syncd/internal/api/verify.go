package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Verification is what a verification has read.
type Verification struct {
	Records int64    `json:"records" doc:"how many records were read, tombstones included"`
	Files   bool     `json:"files" doc:"the files of the store were read through, too; false: this kind of store has none that the node could read"`
	Drift   string   `json:"drift,omitempty" doc:"what the node kept of its records and was not theirs; it was put right"`
	Lost    *Lost    `json:"lost,omitempty" doc:"what damage to the store has cost, until that is accepted; absent if nothing"`
	Missing *Missing `json:"missing,omitempty" doc:"values that no host gives, of records that the node holds, by placement writer; absent if there are none"`
}

// Missing are values that no host gives.
type Missing struct {
	Count int64 `json:"count"`
	Keys  []Key `json:"keys" doc:"of 100 of them at most"`
	Lost  bool  `json:"lost" doc:"of some of them each member that may hold it has answered"`
}

// VerificationOf describes a verification.
func VerificationOf(v peer.Verification, lost *status.Lost) Verification {
	out := Verification{Records: v.Records, Files: v.Files, Drift: v.Drift, Lost: LostOf(lost)}
	if m := v.Missing; m != nil {
		out.Missing = &Missing{Count: m.Count, Lost: m.Lost}
		for _, key := range m.Keys {
			out.Missing.Keys = append(out.Missing.Keys, KeyOf(key))
		}
	}
	return out
}

// Lost says that the node's store was damaged and made anew, and what that has cost. Members give
// back what they hold; what only this node had written is lost for good.
type Lost struct {
	Records int64     `json:"records" doc:"how many records were missing from the new store; -1: that is not known"`
	Shards  []uint32  `json:"shards,omitempty" doc:"of which records were missing, in a namespace of shards"`
	At      time.Time `json:"at" doc:"when the store was made anew"`
}

// LostOf describes what is lost.
func LostOf(l *status.Lost) *Lost {
	if l == nil {
		return nil
	}
	return &Lost{l.Records, l.Shards, l.At}
}

// Damage is what was met of damage to the store.
type Damage struct {
	Found    []string  `json:"found" doc:"the first errors that differ, 8 of them at most"`
	Findings int64     `json:"findings" doc:"how often damage was met"`
	At       time.Time `json:"at" doc:"when it was met first"`
}

// DamageOf describes damage.
func DamageOf(d *peer.Damage) *Damage {
	if d == nil {
		return nil
	}
	return &Damage{append([]string{}, d.Found...), d.Findings, d.At}
}
