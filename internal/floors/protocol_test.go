package floors

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants are those of packages, by package and name: "wire.MaxFrame". Each is an expression of
// others, iota filled in.
type constants map[string]ast.Expr

// read adds the constants of a folder's files.
func (c constants) read(t *testing.T, folder string) {
	t.Helper()
	for name, source := range texts(t, folder+"/*.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			var last []ast.Expr
			for iota, s := range decl.Specs {
				spec := s.(*ast.ValueSpec)
				if len(spec.Values) > 0 {
					last = spec.Values
				}
				for i, n := range spec.Names {
					if i < len(last) {
						c[file.Name.Name+"."+n.Name] = &ast.KeyValueExpr{Key: &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(iota)}, Value: last[i]}
					}
				}
			}
		}
	}
}

// value is a number that an expression of constants gives.
func (c constants) value(t *testing.T, pkg string, e, iota ast.Expr) constant.Value {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return c.value(t, pkg, e.X, iota)
	case *ast.CallExpr: // a conversion
		return c.value(t, pkg, e.Args[0], iota)
	case *ast.BinaryExpr:
		x, y := c.value(t, pkg, e.X, iota), c.value(t, pkg, e.Y, iota)
		switch e.Op {
		case token.SHL:
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		case token.QUO:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y)
		}
		return constant.BinaryOp(x, e.Op, y)
	case *ast.SelectorExpr:
		return c.named(t, e.X.(*ast.Ident).Name+"."+e.Sel.Name)
	case *ast.Ident:
		if e.Name == "iota" {
			return constant.ToInt(c.value(t, pkg, iota, nil))
		}
		return c.named(t, pkg+"."+e.Name)
	}
	t.Fatalf("an expression of the kind %T in %s", e, pkg)
	return nil
}

func (c constants) named(t *testing.T, name string) constant.Value {
	t.Helper()
	if unit, ok := map[string]int64{"time.Millisecond": 1, "time.Second": 1000, "time.Minute": 60_000, "time.Hour": 3600_000}[name]; ok {
		return constant.MakeInt64(unit)
	}
	of, ok := c[name].(*ast.KeyValueExpr)
	if !ok {
		t.Fatalf("there is no constant %s", name)
	}
	pkg, _, _ := strings.Cut(name, ".")
	return c.value(t, pkg, of.Value, of.Key)
}

// number reads "4,096", "2^20 + 2^16", "80 KiB", "10 s" (milliseconds).
func number(t *testing.T, text string) constant.Value {
	t.Helper()
	sum := int64(0)
	for term := range strings.SplitSeq(strings.ReplaceAll(text, ",", ""), "+") {
		digits, unit, _ := strings.Cut(strings.TrimSpace(term), " ")
		base, power, powered := strings.Cut(digits, "^")
		n, err := strconv.ParseInt(base, 10, 64)
		if powered {
			p, failed := strconv.Atoi(power)
			if n, err = n<<(p-1), failed; base != "2" {
				t.Fatalf("%q", text)
			}
		}
		scale, known := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1000, "minutes": 60_000}[unit]
		if err != nil || !known {
			t.Fatalf("%q is no number: %v", text, err)
		}
		sum += n * scale
	}
	return constant.MakeInt64(sum)
}

// TestProtocolTellsNumbersOfTheCode: versions, kinds, methods, codes, reasons, subjects and bounds
// of docs/protocol are those of the code, and none is missing there.
func TestProtocolTellsNumbersOfTheCode(t *testing.T) {
	c := constants{}
	for _, folder := range []string{"dbadapter", "iblt/rateless", "internal/locator", "internal/membership", "internal/netio/stream", "internal/node", "internal/placement", "internal/roster", "internal/syncing", "peer", "reconcile", "reconcile/wire"} {
		c.read(t, folder)
	}
	text, pages := "", texts(t, "docs/protocol/*.md")
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		text += pages[name]
	}
	const n = `([\d,^]+(?: \+ [\d^]+)?(?: (?:KiB|MiB|s|minutes)\b)?)`
	same := func(what, told, name string) {
		t.Helper()
		if got, want := number(t, told), c.named(t, name); !constant.Compare(got, token.EQL, want) {
			t.Errorf("the pages say %s of %s, and %s is %v", told, what, name, want)
		}
	}
	for pattern, names := range map[string]string{
		`1 … N`:                                                        "wire.MaxFrame",
		`at least one and at most N; all frames`:                       "wire.MaxCells",
		`role:1 delta:uvarint\*, at most N;`:                           "wire.MaxIndices",
		`\(head hash:32\?\)\*, at most N;`:                             "wire.MaxOffers",
		`\(head rest\)\*, at most N\.`:                                 "wire.BatchRecords",
		`else value:bytes, at most N \|`:                               "dbadapter.MaxValue",
		`reason:1\)\*, at most N \|`:                                   "wire.MaxRefusals",
		`code 8, 1 to N statements, each of 1 to N bytes`:              "wire.MaxStatements wire.MaxStatement",
		`text: at most N bytes of UTF-8`:                               "wire.MaxText",
		`mark:8\)\*, at least one and at most N;`:                      "wire.MaxMarks",
		`count:uvarint, 1 to N \|`:                                     "wire.MaxHeads",
		`key: 1 to N bytes`:                                            "dbadapter.MaxKey",
		`Hello: version N, mapping N, flags`:                           "wire.Version rateless.MappingVersion",
		`push     = version \(1: N\)`:                                  "wire.Version",
		`request +=\s\{1: N \(version\)`:                               "membership.JoinVersion",
		`milliseconds, at most N, B may wait`:                          "wire.MaxPatience",
		`at most N, B offers it to A again`:                            "wire.MaxRest",
		`An index takes N records that are not tombstones, and N keys`: "dbadapter.MaxBucket dbadapter.MaxBucketKeys",
		`cells of Hello \| N \|`:                                       "reconcile.MaxFirstCells",
		`Hello carries N cells unless`:                                 "reconcile.FirstCells",
		`sends N cells for d up to 5`:                                  "reconcile.QuietCells",
		`When B expects N differences or more`:                         "reconcile.PartsFrom",
		`with some N\sdifferences each`:                                "reconcile.PartSize",
		`at least every N, and computes for at most N between`:         "reconcile.workingEvery reconcile.workingFor",
		`a value over N \(then with the hash\)`:                        "reconcile.offerAbove",
		`Hello, within N and N \|`:                                     "stream.firstTimeout peer.maxHello",
		`\| N of members and N of strangers`:                           "peer.greetings peer.greetings",
		`at a time gives a namespace N records or more`:                "syncing.turnFrom",
		`until N after its last sync`:                                  "syncing.TurnRest",
		`An Ask has at most N\.`:                                       "peer.maxAsk",
		`dialled, at most N of at most N bytes, 2: true`:               "membership.MaxAddrs membership.MaxAddrSize",
		`sends one message of at most N, and ends`:                     "peer.maxJoinRequest",
		`answers with one of at most N bytes`:                          "membership.MaxJoinReply",
		`from 2 to N, \*replicas\*`:                                    "placement.MaxShards",
		`a news N changes, a page N entries`:                           "locator.MaxChanges locator.MaxPage",
		`A message has at most N bytes, a news`:                        "locator.MaxMessage",
		`first byte of Hello and Ask \| N \|`:                          "wire.Version",
		`first byte of a push \| N \|`:                                 "wire.Version",
		`second byte of Hello \| N \|`:                                 "rateless.MappingVersion",
		`\| join \| request and reply \| N \|`:                         "membership.JoinVersion",
		`one More \| 1 to N cells`:                                     "reconcile.MaxCells",
		`messages More in a sync \| N \|`:                              "reconcile.maxRounds",
		`cells before B looks at any \| N \|`:                          "rateless.MinCells",
		`\| marks \| N\.`:                                              "reconcile.maxMarks",
		`or once N of them are there`:                                  "reconcile.maxBucketBytes",
		`while fewer than N records and less than N of them moved`:     "reconcile.headwayRecords reconcile.headwayBytes",
		`The data is at most N bytes`:                                  "wire.MaxPush",
		`In a namespace of at most N members`:                          "wire.MaxDirect",
		`answers N questions of a peer at once, N in all`:              "syncing.MaxQuestions syncing.MaxQuestionsInAll",
		`It answers N a second of one peer, routed ones too, N after`:  "syncing.QuestionRate syncing.QuestionBurst",
		`answers N routed questions of a peer at once, N in all\. About the feed it answers N more of a peer, N in all`: "syncing.MaxRouted syncing.MaxRoutedInAll syncing.MaxFeeding syncing.MaxFeedingInAll",
		`A cursor has at most N bytes`:               "wire.MaxCursor",
		`deterministic encoding, of at most N bytes`: "placement.MaxTable",
		`\| 1 to N peer ids in binary`:               "placement.MaxHosts",
		`inline: 0 to N`:                             "placement.MaxInline",
		`\*replicas\* from 1 to N`:                   "placement.MaxReplicas",
	} {
		m := regexp.MustCompile(strings.ReplaceAll(pattern, "N", n)).FindStringSubmatch(text)
		fields := strings.Fields(names)
		if len(m) != len(fields)+1 {
			t.Errorf("the pages say nothing of %s any more: %s", names, pattern)
			continue
		}
		for i, name := range fields {
			same(pattern, m[i+1], name)
		}
	}

	for _, list := range []struct{ prefix, within, each string }{
		{"wire.Kind", `(?s)\| kind \| message.*?\n\n`, `(?m)^\| (\d+) \| (\w+) \|`},
		{"wire.Subject", `(?s)\| subject \| question.*`, `(?m)^\| (\d+) (key|set|status|record|hold|feed|scan|changes|kept|body|names) \| (?:head|records|at|bytes|aside|\|)`},
		{"wire.Code", `(?s)\| code \| meaning.*?\n\n`, `(?m)^\| (\d+) ([a-z ]+) \|`},
		{"wire.Reason", `(?s)\| 2 clock, 4 writer.*?\n\n`, `(\d) (clock|signature|writer|floor|full|body)`},
		{"wire.Method", `\| method of Result \| .*?\.`, `(\d) (sketch|all|parts|ranges)`},
	} {
		told := map[string]bool{}
		part := regexp.MustCompile(list.within).FindString(text)
		for _, m := range regexp.MustCompile(list.each).FindAllStringSubmatch(part, -1) {
			name := ""
			for word := range strings.FieldsSeq(m[2]) {
				name += strings.ToUpper(word[:1]) + word[1:]
			}
			told[list.prefix+name] = true
			same(m[2], m[1], list.prefix+name)
		}
		for name := range c {
			if rest, ok := strings.CutPrefix(name, list.prefix); ok && rest != "s" && name != "wire.MethodAuto" && name != "wire.MethodSame" && !told[name] {
				t.Errorf("the pages do not have the number of %s", name)
			}
		}
	}
}
