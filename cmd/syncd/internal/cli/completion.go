package cli

import (
	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `Examples:
    source <(syncd completion bash)
    source <(syncd completion zsh)
    syncd completion fish > ~/.config/fish/completions/syncd.fish`
}

// asks makes a shell run this program, with the words typed so far in COMP_LINE, for
// those that may follow.
var asks = map[string]string{
	"bash": "complete -o default -C syncd syncd\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C syncd syncd\n",
	"fish": "complete -c syncd -a '(COMP_LINE=(commandline -cp) syncd)'\n",
}

// Run prints what the shell reads.
func (c completionCmd) Run(a *app) error {
	a.printf("%s", asks[c.Shell])
	return nil
}

// answerShell answers a shell, if one asks, and ends the process.
func answerShell(parser *kong.Kong) {
	kongplete.Complete(parser,
		kongplete.WithPredictor("level", complete.PredictSet("one", "quorum", "all")),
		kongplete.WithPredictor("placement", complete.PredictSet("hash", "prefix", "writer")))
}
