package main

// The settings of section 5. What the paper states as a number is given with
// them. It does not give the points of its figures, so those are ours.

// published is what the paper says of a setting, 0 trials for nothing.
type published struct {
	incomplete count      // trials in which a valid key was not listed
	left       [4]float64 // Table 2: percentage of trials with so many not listed
	found      float64    // percentage of valid keys that GET found
}

type experiment struct {
	name  string
	s     setting
	paper published
}

const (
	small = 10_000
	large = 100_000
)

// threshold are the points of Figure 1.
func thresholdSmall() []experiment {
	all := sweep(small, 14_000, 14_700, 100)
	all[5].paper.incomplete = count{2, 20_000}
	all[6].paper.incomplete = count{0, 220_000}
	all[7].paper.incomplete = count{0, 20_000} // "14,600 cells or more"
	return all
}

func thresholdLarge() []experiment {
	all := sweep(large, 141_000, 145_000, 500)
	all[6].paper.incomplete = count{0, 220_000}
	all[7].paper.incomplete = count{0, 20_000} // "144,000 cells or more"
	all[8].paper.incomplete = count{0, 20_000}
	return all
}

func sweep(keys, from, to, step int) (all []experiment) {
	for cells := from; cells <= to; cells += step {
		all = append(all, experiment{s: setting{keys: keys, cells: cells}})
	}
	return all
}

// faulty are the tests of duplicates and extraneous deletions.
func faulty() []experiment {
	return []experiment{
		{"10,000 keys", setting{keys: small, cells: 80_000, faults: true, gets: true}, published{incomplete: count{0, 20_000}, found: 97.83}},
		{"100,000 keys", setting{keys: large, cells: 800_000, faults: true, gets: true}, published{incomplete: count{0, 20_000}, found: 97.83}},
	}
}

// multipleSmall are the points of Figure 2(a), and experiments 1 and 2 of
// Table 2.
func multipleSmall() []experiment {
	at := func(multi int, paper published) experiment {
		return experiment{"", setting{keys: small, cells: 80_000, multi: multi, gets: true}, paper}
	}
	return []experiment{
		at(250, published{}),
		at(500, published{incomplete: count{4, 20_000}, found: 97.83}),
		at(1000, published{incomplete: count{128, 20_000}, found: 97.83, left: [4]float64{99.360, 0.640, 0, 0}}),
		at(1500, published{}),
		at(2000, published{incomplete: count{3299, 20_000}, left: [4]float64{83.505, 14.885, 1.520, 0.090}}),
		at(2500, published{}),
		at(3000, published{}),
	}
}

// multipleLarge are the points of Figure 2(b), and experiment 3 of Table 2.
func multipleLarge() []experiment {
	at := func(multi int, paper published) experiment {
		return experiment{"", setting{keys: large, cells: 800_000, multi: multi}, paper}
	}
	return []experiment{
		at(5_000, published{}),
		at(10_000, published{incomplete: count{1440, 20_000}, left: [4]float64{92.800, 6.915, 0.265, 0.020}}),
		at(15_000, published{}),
		at(20_000, published{}),
		at(25_000, published{}),
	}
}

// lostSubtable are tables of which one of five subtables is lost. The other
// four suffice if they have 1.295 cells a key.
func lostSubtable() []experiment {
	at := func(cells int) experiment {
		return experiment{"", setting{keys: small, cells: cells, lost: 1, gets: true}, published{}}
	}
	return []experiment{at(14_600), at(16_000), at(17_000), at(80_000)}
}
