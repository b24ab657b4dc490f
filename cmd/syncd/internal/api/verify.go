package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
)

// Verification is what a verification has read.
type Verification struct {
	Records int64    `json:"records" doc:"how many records were read, tombstones included"`
	Files   bool     `json:"files" doc:"the files of the store were read through, too; false: this kind of store has none that the node could read"`
	Drift   string   `json:"drift,omitempty" doc:"what the node kept of its records and was not theirs; it was put right"`
	Lost    *Lost    `json:"lost,omitempty" doc:"what the node lacks since damage to its store was repaired; absent if nothing"`
	Missing *Missing `json:"missing,omitempty" doc:"values that no host gives, of records that the node holds, by placement writer; absent if there are none"`
}

// Missing are values that no host gives.
type Missing struct {
	Count int64 `json:"count"`
	Keys  []Key `json:"keys" doc:"of 100 of them at most"`
	Lost  bool  `json:"lost" doc:"of some of them each member that may hold it has answered"`
}

// VerificationOf describes a verification.
func VerificationOf(v peer.Verification, lost *peer.Lost) Verification {
	out := Verification{Records: v.Records, Files: v.Files, Drift: v.Drift, Lost: LostOf(lost)}
	if m := v.Missing; m != nil {
		out.Missing = &Missing{Count: m.Count, Lost: m.Lost}
		for _, key := range m.Keys {
			out.Missing.Keys = append(out.Missing.Keys, KeyOf(key))
		}
	}
	return out
}

// Lost is what the node lacks since damage to its store was repaired.
type Lost struct {
	Keys     []Key     `json:"keys" doc:"of missing records, 1,024 of them at most"`
	Unnamed  int64     `json:"unnamed" doc:"how many more records were missing when it was found, until that is accepted, as no key tells whether members gave them back; -1: that is not known"`
	Control  bool      `json:"control" doc:"the list of members may lack something until the next sync"`
	Older    bool      `json:"older" doc:"records may be older ones than were held, until the next sync"`
	SetAside int       `json:"set_aside" doc:"records that were set aside since they may be older ones"`
	Kept     int       `json:"kept" doc:"entries that are missing from the lists of what was kept"`
	At       time.Time `json:"at" doc:"when it was found"`
}

// LostOf describes what is lost.
func LostOf(l *peer.Lost) *Lost {
	if l == nil {
		return nil
	}
	out := &Lost{Keys: []Key{}, Unnamed: l.Unnamed, Control: l.Control, Older: l.Older, SetAside: l.SetAside, Kept: l.Kept, At: l.At}
	for _, key := range l.Keys {
		out.Keys = append(out.Keys, KeyOf(key))
	}
	return out
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

// Repair is what a repair has found and done.
type Repair struct {
	Verification
	Damage   []string `json:"damage" doc:"the damaged places of the store that were left behind, by file"`
	Regained int64    `json:"regained" doc:"how many records came from members"`
	From     []string `json:"from" doc:"the members that were synced with"`
}

// RepairOf describes a repair.
func RepairOf(r *peer.Repair) Repair {
	out := Repair{Verification: VerificationOf(r.Verification, r.Lost), Damage: append([]string{}, r.Damage...), Regained: r.Regained, From: []string{}}
	for _, id := range r.From {
		out.From = append(out.From, id.String())
	}
	return out
}
