package bench

// Usage is what a sync cost the machine, both sides and whatever else the process
// did meanwhile. It is zero where the system does not tell.
type Usage struct {
	CPUMS       float64 `json:"cpu_ms"`       // of the processors
	MajorFaults int64   `json:"major_faults"` // pages that had to be read from the disk
	MinorFaults int64   `json:"minor_faults"` // pages that were in memory, and not mapped
	DiskRead    int64   `json:"disk_read"`    // bytes
}

func (u Usage) since(before Usage) Usage {
	return Usage{u.CPUMS - before.CPUMS, u.MajorFaults - before.MajorFaults, u.MinorFaults - before.MinorFaults, u.DiskRead - before.DiskRead}
}
