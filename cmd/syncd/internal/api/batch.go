package api

// MaxBatchBody bounds the body of a batch, in bytes: 1.5 MiB of text whose every byte is
// escaped as \u00XX, and room for the names of 4,096 items.
const MaxBatchBody = 16 << 20

// BatchItem is one write of a batch.
type BatchItem struct {
	Key
	Value   *string `json:"value,omitempty" doc:"the value, if it is UTF-8"`
	Value64 []byte  `json:"value64,omitempty" doc:"the value, if it is not"`
	Delete  bool    `json:"delete,omitempty" doc:"make the record a tombstone, whether or not it is there"`
	TTL     string  `json:"ttl,omitempty" doc:"after which time the record expires, such as 90s or 720h; without it, never"`
	// IfVersion and IfAbsent are the conditions of If-Match and If-None-Match: *.
	IfVersion string `json:"if_version,omitempty" doc:"the version that the key must hold, else nothing of the batch is written"`
	IfAbsent  bool   `json:"if_absent,omitempty" doc:"the key must hold nothing, not even a deleted or expired record"`
}

// Versions are those that the writes of a batch have made, in their order.
type Versions struct {
	Versions []string `json:"versions"`
}
