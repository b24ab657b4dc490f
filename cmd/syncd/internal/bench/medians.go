package bench

import (
	"encoding/json"
	"slices"
	"time"
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// medians takes the median of each number, the lower one of two.
func medians[T any](reports []T) (out T, err error) {
	all := make([]map[string]any, len(reports))
	for i, r := range reports {
		raw, err := json.Marshal(r)
		if err != nil {
			return out, err
		}
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return out, err
		}
	}
	raw, err := json.Marshal(medianOf(all))
	if err != nil {
		return out, err
	}
	err = json.Unmarshal(raw, &out)
	return out, err
}

// medianOf goes through the JSON forms field by field; what is no number is
// taken from the last.
func medianOf(all []map[string]any) map[string]any {
	out := map[string]any{}
	for name, last := range all[len(all)-1] {
		switch last.(type) {
		case float64:
			var numbers []float64
			for _, m := range all {
				v, _ := m[name].(float64) // a step that did not occur took no time
				numbers = append(numbers, v)
			}
			slices.Sort(numbers)
			out[name] = numbers[(len(numbers)-1)/2]
		case map[string]any:
			var inner []map[string]any
			for _, m := range all {
				v, _ := m[name].(map[string]any)
				inner = append(inner, v)
			}
			out[name] = medianOf(inner)
		default:
			out[name] = last
		}
	}
	return out
}
