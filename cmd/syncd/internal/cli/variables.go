package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// variablePrefix begins the names of this program's environment variables.
const variablePrefix = "SYNCD_"

// variableOf is the environment variable of a flag, if it has one.
func variableOf(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// nameVariables gives the settings their environment variables. Other flags have none: a
// variable outlives the command that it was meant for.
func nameVariables(k *kong.Kong) error {
	eachNode(k.Model.Node, func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Tag.Has("setting") {
				f.Envs = []string{variableOf(f.Name)}
				f.Tag.Envs = f.Envs
			}
		}
	})
	return nil
}

func eachNode(n *kong.Node, do func(*kong.Node)) {
	do(n)
	for _, child := range n.Children {
		eachNode(child, do)
	}
}

// ofKubernetes matches the variables that Kubernetes sets in each container for a service
// called syncd, or syncd-NAME.
var ofKubernetes = regexp.MustCompile(`^SYNCD_(\w+_)?(SERVICE_HOST=|SERVICE_PORT|PORT=\w+://|PORT_\d+_)`)

// checkVariables refuses a variable that sets nothing: it is misspelt, or its author takes
// it for in force.
func checkVariables(model *kong.Application, environ []string) error {
	var known []string
	flags := make(map[string]bool)
	eachNode(model.Node, func(n *kong.Node) {
		for _, f := range n.Flags {
			flags[f.Name] = true
			known = append(known, f.Envs...)
		}
	})
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) || ofKubernetes.MatchString(entry) {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, variablePrefix), "_", "-"))
		if flags[flag] {
			return problem.Usage("the environment variable %s is not one of syncd's: unset it, and give --%s to the command that it is for", name, flag)
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return advice.Edits(name, a) - advice.Edits(name, b) })
		return problem.Usage("the environment variable %s is not one of syncd's; the nearest is %s; unset it, or correct its name", name, nearest)
	}
	return nil
}

// envName is the name of the environment variable that sets the flag, if one
// does.
func envName(f *kong.Flag) string {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name
		}
	}
	return ""
}
