package main

import (
	"bytes"
	"slices"
	"testing"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name      string
		events    string
		runFailed bool
		passed    bool
		want      string
	}{
		{
			name: "passed, with one skip",
			events: `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    one_test.go:3: chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestOne"}
{"Action":"run","Package":"m/a","Test":"TestEFA"}
{"Action":"output","Package":"m/a","Test":"TestEFA","Output":"=== RUN   TestEFA\n"}
{"Action":"output","Package":"m/a","Test":"TestEFA","Output":"    efa_test.go:9: efa: no device\n"}
{"Action":"output","Package":"m/a","Test":"TestEFA","Output":"--- SKIP: TestEFA (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestEFA"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.25}
{"Action":"skip","Package":"m/b"}
`,
			passed: true,
			want: `ok    m/a 0.2s
-     m/b has no tests
skipped 1:
  m/a: TestEFA: efa_test.go:9: efa: no device
1 passed, 0 failed, 1 skipped
`,
		},
		{
			name: "subtests count, their parent does not",
			events: `{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"run","Package":"m/a","Test":"TestOne/x"}
{"Action":"run","Package":"m/a","Test":"TestOne/y"}
{"Action":"run","Package":"m/a","Test":"TestOne/y/z"}
{"Action":"run","Package":"m/a","Test":"TestOne/s"}
{"Action":"run","Package":"m/a","Test":"TestOne/t"}
{"Action":"output","Package":"m/a","Test":"TestOne/s","Output":"    because\n"}
{"Action":"output","Package":"m/a","Test":"TestOne/t","Output":"    because\n"}
{"Action":"skip","Package":"m/a","Test":"TestOne/s"}
{"Action":"skip","Package":"m/a","Test":"TestOne/t"}
{"Action":"output","Package":"m/a","Test":"TestOne/y/z","Output":"    z_test.go:1: wrong\n"}
{"Action":"fail","Package":"m/a","Test":"TestOne/y/z"}
{"Action":"fail","Package":"m/a","Test":"TestOne/y"}
{"Action":"pass","Package":"m/a","Test":"TestOne/x"}
{"Action":"fail","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Output":"FAIL\n"}
{"Action":"fail","Package":"m/a","Elapsed":1}
`,
			runFailed: true,
			want: `    z_test.go:1: wrong
FAIL  m/a 1.0s
skipped 2:
  m/a: TestOne/s and 1 more: because
1 passed, 1 failed, 2 skipped
`,
		},
		{
			name: "does not build",
			events: `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"m/a","Action":"build-fail"}
{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}
{"Action":"fail","Package":"m/a","Elapsed":0,"FailedBuild":"m/a"}
`,
			runFailed: true,
			want: `a.go:1: undefined: x
FAIL  m/a 0.0s
0 passed, 1 failed, 0 skipped
`,
		},
		{
			name: "the package fails after its tests passed",
			events: `{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"pass","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"leaked: 1 endpoint\n"}
{"Action":"fail","Package":"m/a"}
`,
			runFailed: true,
			want: `leaked: 1 endpoint
FAIL  m/a 0.0s
1 passed, 1 failed, 0 skipped
`,
		},
		{
			name: "killed while a test ran",
			events: `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestHang"}
{"Action":"output","Package":"m/a","Test":"TestHang","Output":"    waiting\n"}
`,
			runFailed: true,
			want: `    waiting
--- FAIL: TestHang did not finish
FAIL  m/a 0.0s
0 passed, 1 failed, 0 skipped
`,
		},
		{
			name:   "nothing ran",
			events: "",
			want:   "no test ran\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name:      "no events but words",
			events:    "go: no such module",
			runFailed: true,
			want:      "go: no such module\nno test ran\n0 passed, 1 failed, 0 skipped\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out)
			// In small pieces, as a pipe may deliver them.
			for rest := []byte(c.events); len(rest) > 0; {
				n := min(7, len(rest))
				if _, err := r.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if passed := r.finish(c.runFailed); passed != c.passed {
				t.Errorf("passed is %t, want %t", passed, c.passed)
			}
			if got := out.String(); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// What -run=/^efa$ has run of a test without such a subtest is no test of efa.
func TestReportOfOneName(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	r.only = "efa"
	for _, name := range []string{"TestOne", "TestOne/efa", "TestTwo/x", "TestTwo/x/efa", "TestTwo/x/efa/y", "TestTwo", "TestNone", "TestLike/efa-direct", "TestLike"} {
		if _, err := r.Write([]byte(`{"Action":"pass","Package":"m/a","Test":"` + name + `"}` + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Write([]byte(`{"Action":"pass","Package":"m/a"}` + "\n" +
		`{"Action":"pass","Package":"m/b","Test":"TestOther"}` + "\n" + `{"Action":"pass","Package":"m/b"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if !r.finish(false) {
		t.Error("it failed")
	}
	const want = `ok    m/a 0.0s
ok    m/b 0.0s
not counted, for they have no test of efa:
  m/a: TestNone, TestLike/efa-direct
  m/b: TestOther
2 passed, 0 failed, 0 skipped
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}

	out.Reset()
	r = newReport(&out)
	r.only = "efa"
	if _, err := r.Write([]byte(`{"Action":"pass","Package":"m/b","Test":"TestOther"}` + "\n" + `{"Action":"pass","Package":"m/b"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if r.finish(false) {
		t.Errorf("it passed without a test of efa:\n%s", out.String())
	}
}

func TestModules(t *testing.T) {
	folders, rest := modules([]string{"-also=one", "-also=two", "-count=1", "-also=", "./..."})
	if want := []string{".", "one", "two"}; !slices.Equal(folders, want) {
		t.Errorf("folders %q instead of %q", folders, want)
	}
	if want := []string{"-count=1", "-also=", "./..."}; !slices.Equal(rest, want) {
		t.Errorf("the rest %q instead of %q", rest, want)
	}
	folders, rest = modules(nil)
	if len(folders) != 1 || len(rest) != 0 {
		t.Errorf("of nothing: %q and %q", folders, rest)
	}
}
