package api

// NewBackup asks for a backup.
type NewBackup struct {
	Dir  string `json:"dir" minLength:"1" doc:"absolute path of a folder on the daemon's machine: empty, absent, or with this node's backups"`
	Full bool   `json:"full,omitempty" doc:"make one that needs no backup before it"`
}
