package main

import (
	"fmt"
	"strings"
	"testing"
)

// stream makes events of lines "verdict test" or "skip test: reason".
func stream(lines string) string {
	var b strings.Builder
	b.WriteString(`{"Action":"start","Package":"m/fabric"}` + "\n")
	end := "pass"
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		test, reason, skipped := strings.Cut(rest, ": ")
		fmt.Fprintf(&b, `{"Action":"run","Package":"m/fabric","Test":%q}`+"\n", test)
		if skipped {
			fmt.Fprintf(&b, `{"Action":"output","Package":"m/fabric","Test":%q,"Output":"2026/11/20 INFO chatter\n"}`+"\n", test)
			fmt.Fprintf(&b, `{"Action":"output","Package":"m/fabric","Test":%q,"Output":%q}`+"\n", test, "    a_test.go:12: "+reason+"\n")
			fmt.Fprintf(&b, `{"Action":"output","Package":"m/fabric","Test":%q,"Output":"--- SKIP: x\n"}`+"\n", test)
		}
		if verdict == "fail" || verdict == "crash" {
			end = "fail"
		}
		if verdict != "crash" {
			fmt.Fprintf(&b, `{"Action":%q,"Package":"m/fabric","Test":%q}`+"\n", verdict, test)
		}
	}
	fmt.Fprintf(&b, `{"Action":%q,"Package":"m/fabric"}`+"\n", end)
	return b.String()
}

const someTopics = `
# Two cases.
av    | fi_av_test    | TestInsert* TestAddress
peek  | fi_peek       | TestPeek TestSuite/*/peek
`

func matrixOf(t *testing.T, lines string) (*matrix, error) {
	t.Helper()
	topics, err := readTopics(someTopics)
	if err != nil {
		t.Fatal(err)
	}
	results, err := readStream(strings.NewReader(stream(lines)))
	if err != nil {
		t.Fatal(err)
	}
	return newMatrix(topics, results)
}

func TestMatrix(t *testing.T) {
	m, err := matrixOf(t, `
		pass TestInsertAll
		pass TestInsertAll/sockets
		pass TestInsertAll/tcp
		pass TestInsertAll/tcp/twice
		pass TestInsertAll/tcp/thrice
		pass TestInsert
		pass TestPeek
		pass TestPeek/sockets
		fail TestPeek/tcp
		skip TestPeek/shm: peek: no | completion
		skip TestPeek/sub/shm/one: peek: no | completion
		skip TestPeek/net: not here
		pass TestSuite
		pass TestSuite/tcp
		pass TestSuite/tcp/peek
		pass TestSuite/tcp/peek/one
		pass TestSuite/tcp/peeking
		pass TestZebra
		crash TestZebra/shm`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `<!-- matrix 9.9 begin -->
## Matrix, libfabric 9.9

The functional cases of fabtests as Go tests: run / passed / unsupported. What is
unsupported did not run. The column "any" has the tests that are not about one
provider. Made by ` + "`make matrix`" + `.

| Case | fabtests | sockets | tcp | shm | net | any |
|---|---|---|---|---|---|---|
| av | fi_av_test | 1 / 1 / 0 | 2 / 2 / 0 |  |  | 1 / 1 / 0 |
| peek | fi_peek | 1 / 1 / 0 | 2 / 1 / 0, **1 failed** | 0 / 0 / 2 | 0 / 0 / 1 |  |
| other |  |  | 1 / 1 / 0 | 1 / 0 / 0, **1 failed** |  |  |
| all |  | 2 / 2 / 0 | 5 / 4 / 0, **1 failed** | 1 / 0 / 2, **1 failed** | 0 / 0 / 1 | 1 / 1 / 0 |

Failed:

- ` + "`TestPeek/tcp`" + `
- ` + "`TestZebra/shm`" + `

Unsupported, and why: what the provider answered, where it answers at all.

| Case | Provider | Tests | Reason |
|---|---|---|---|
| peek | shm | ` + "`TestPeek/shm`" + ` and 1 more | peek: no \| completion |
| peek | net | ` + "`TestPeek/net`" + ` | not here |
<!-- matrix 9.9 end -->
`
	if got := m.markdown("9.9"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestResultsOfOneProvider(t *testing.T) {
	results := []result{
		{test: "TestPeek/efa", verdict: "pass"},
		{test: "TestPeek/efa/x", verdict: "skip"},
		{test: "TestPeek/tcp", verdict: "pass"},
		{test: "TestOther", verdict: "pass"},
		{test: "TestOther", verdict: "fail"},
	}
	kept := about("efa", results)
	if len(kept) != 3 || kept[0].test != "TestPeek/efa" || kept[1].test != "TestPeek/efa/x" || kept[2].verdict != "fail" {
		t.Errorf("got %v", kept)
	}
}

func TestTopicWithoutTest(t *testing.T) {
	_, err := matrixOf(t, "pass TestInsert/shm\npass TestOther")
	if err == nil || err.Error() != "no test for: peek (TestPeek TestSuite/*/peek)" {
		t.Errorf("got %v", err)
	}
}

func TestFailureOutsideOfTests(t *testing.T) {
	leaked := strings.Replace(stream("pass TestPeek"), `"pass","Package":"m/fabric"}`, `"fail","Package":"m/fabric"}`, 1)
	results, err := readStream(strings.NewReader(leaked))
	if err != nil {
		t.Fatal(err)
	}
	if last := results[len(results)-1]; len(results) != 2 || last.verdict != "fail" {
		t.Errorf("got %v", results)
	}
}

func TestStreamsThatAreNone(t *testing.T) {
	whole := stream("pass TestPeek")
	for name, in := range map[string]string{
		"cut off": whole[:strings.LastIndex(strings.TrimSpace(whole), "\n")],
		"no JSON": "ok  \tm/fabric\t0.1s\n",
		"no test": `{"Action":"fail","Package":"m/fabric"}`,
		"nothing": "",
	} {
		if _, err := readStream(strings.NewReader(in)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTopicsThatAreNone(t *testing.T) {
	for _, list := range []string{"a | b", "a | b | [x"} {
		if _, err := readTopics(list); err == nil {
			t.Errorf("%q: no error", list)
		}
	}
	if _, err := readTopics(topicList); err != nil {
		t.Error(err)
	}
}

func TestPlace(t *testing.T) {
	section := begin("1.2") + "\nnew\n" + end("1.2") + "\n"
	old := begin("1.2") + "\nold\n" + end("1.2") + "\n"
	other := begin("2.1") + "\nother\n" + end("2.1") + "\n"
	for _, c := range []struct{ text, want string }{
		{"", section},
		{"# Head\n", "# Head\n\n" + section},
		{"# Head\n" + old + "tail\n", "# Head\n" + section + "tail\n"},
		{other + old, other + section},
		{other, other + "\n" + section},
	} {
		got, err := place(c.text, "1.2", section)
		if err != nil || got != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{old + old, begin("1.2"), end("1.2") + begin("1.2")} {
		if got, err := place(text, "1.2", section); err == nil {
			t.Errorf("%q: got %q and no error", text, got)
		}
	}
}
