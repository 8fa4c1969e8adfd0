package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// The document says what is true of the headers here, and everything is bound
// or has its reason.
func TestDocument(t *testing.T) {
	root := filepath.Join("..", "..")
	report, err := look(root, "")
	require.NoError(t, err)
	document, err := os.ReadFile(filepath.Join(root, "docs", "coverage.md"))
	require.NoError(t, err)
	written := strings.Contains(string(document), "the headers of libfabric "+report.version+",")
	if !written && report.version != "2.1" {
		testenv.Need(t, "coverage", errors.New("reasons.txt knows libfabric 1.17 and 2.1, and not "+report.version))
	}
	require.NoError(t, report.problems())
	if written {
		require.Equal(t, report.markdown(), string(document), "run: go run ./scripts/coverage")
	}
}

func TestEveryReasonIsNeeded(t *testing.T) {
	reasons, err := readReasons("reasons.txt")
	require.NoError(t, err)
	for _, r := range reasons {
		require.NotEmpty(t, r.text)
	}
	headers, err := installed()
	require.NoError(t, err)
	_, functions, err := readHeaders(headers)
	require.NoError(t, err)
	s, err := readSources(filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, r := range reasons {
		for name := range s.bound {
			require.NotEqual(t, r.pattern, name, "it is bound, and needs no reason")
		}
	}
	require.Greater(t, len(functions), 150)
}

const header = `
#ifndef FI_X_H
#define FI_X_H
#include <x.h>
#ifdef __cplusplus
extern "C" {
#endif
#define FI_MAJOR_VERSION 3
#define FI_MINOR_VERSION 14
/* int fi_commented(void); */
#define FI_CALL(x) \
	fi_macro(x)
enum { FI_A = 1 << 2, FI_B };
struct fi_ops { size_t size; int (*fi_member)(struct fid *fid); };
typedef int (*fi_callback)(void *arg);
struct fi_thing {
	struct { int fi_inner(int); } in;
} fi_thing_a;
int fi_plain(uint32_t fi_addr, // int fi_also_commented(void);
	     void *context);
static inline FI_DEPRECATED_FUNC int
fi_old(struct fid *fid)
{
	if (fid) { return fi_called_in_a_body(fid); }
	return fi_alias(fid);
}
static inline int fi_alias(struct fid *fid) { return fid->ops->control(fid); }
void fi_last(void) FI_FORMAT_PRINTF(6, 7);
#ifdef __cplusplus
}
#endif
#endif
`

func TestFunctionsOf(t *testing.T) {
	var names, old []string
	for _, f := range functionsOf(header) {
		names = append(names, f.Name)
		if f.Deprecated {
			old = append(old, f.Name)
			require.Equal(t, []string{"fi_called_in_a_body", "fi_alias"}, f.calls)
		}
	}
	require.Equal(t, []string{"fi_plain", "fi_old", "fi_alias", "fi_last"}, names)
	require.Equal(t, []string{"fi_old"}, old)
	require.Equal(t, "3.14", versionOf(header))
	require.Empty(t, versionOf("#define FI_MAJOR_VERSION 3"))
	_, _, err := readHeaders(t.TempDir())
	require.ErrorContains(t, err, "no fabric.h")
}

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

func TestCover(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"rdma/fabric.h":                header,
		"rdma/providers/p.h":           "int fi_hidden(void);",
		"rdma/ib_other.h":              "int fi_not_ours(void);",
		"docs/.keep":                   "",
		"cgo/x.c":                      "int f(void) { /* fi_last(); */ return fi_old(1); }",
		"cgo/x_test.go":                "package cgo\n// Implements: void fi_last(void)\nfunc TestX() {}\n",
		"fabric/y.go":                  "package fabric\n\n// Y says fi_last() in passing.\n//\n// Implements: int fi_plain(...), fi_old(...)\nfunc (y *Y[T]) Do() {}\n",
		"scripts/coverage/none":        "",
		"scripts/coverage/numbers.txt": "",
		"cgo/x.go": `package cgo

/*
static int g(void) { return fi_plain(0, 0); }
*/
import "C"

// Kinds of things.
//
// Implements: int fi_old(struct fid *fid)
const (
	KindA = 1
	KindB = 2
)

// V is one.
//
// Implements: int fi_new(void)
func (v V) V() { C.fi_new(C.FI_A) }

// Implements: int fi_alias(struct fid *fid)
type T int
`,
	})
	reasons := filepath.Join(root, "scripts", "coverage", "reasons.txt")
	rdma := filepath.Join(root, "rdma")
	output := filepath.Join(root, "docs", "coverage.md")

	write(t, root, map[string]string{"scripts/coverage/reasons.txt": "# none\nproviders/*: internal: of providers\n"})
	err := run(root, rdma, output)
	require.ErrorContains(t, err, "fi_last (fabric.h) is not bound, and reasons.txt does not say why")
	require.ErrorContains(t, err, "75.0 % is bound")
	require.ErrorContains(t, err, "FI_B (fabric.h) is not in package cgo, and numbers.txt does not say why")
	write(t, root, map[string]string{"scripts/coverage/numbers.txt": "FI_B: left out: of no use\nFI_M*: otherwise: as a number\nFI_X_H: internal: guards\n"})

	write(t, root, map[string]string{"scripts/coverage/reasons.txt": "providers/*: internal: of providers\nfi_la*: deprecated: of old\n"})
	require.ErrorContains(t, run(root, rdma, output), "fi_last (fabric.h) is not marked deprecated")
	write(t, root, map[string]string{"scripts/coverage/reasons.txt": "providers/*: internal: of providers\nfi_la*: deprecated: fi_x(3) of 3.14: of old\n"})
	require.NoError(t, run(root, rdma, output))
	text, err := os.ReadFile(output)
	require.NoError(t, err)
	for _, want := range []string{
		"headers of libfabric 3.14,",
		"**5 functions: 3 bound, 1 deprecated, 1 internal to providers, 0 left out.",
		"| fi_plain | fabric.Y.Do |",
		"| fi_old | cgo.KindA, fabric.Y.Do |",
		"| fi_alias | cgo.T |",
		"| fi_last | deprecated: fi_x(3) of 3.14: of old |",
		"| fi_hidden | internal: of providers |",
		"| providers/p.h | 1 | 0 | 0 | 1 | 0 | - |",
		"| fi_new | cgo.V.V |",
		"| fabric.h | 5 | 1 | 4 |",
		"| FI_B | left out: of no use |",
		`| FI_M\* | otherwise: as a number |`,
	} {
		require.Contains(t, string(text), want)
	}
	require.NotContains(t, string(text), "fi_not_ours")

	write(t, root, map[string]string{"cgo/z.go": "package cgo\n\n// Implements: void fi_last(void)\nfunc Z() {}\n"})
	require.ErrorContains(t, run(root, rdma, output), "cgo.Z claims to implement fi_last, which package cgo does not call")

	for _, wrong := range []string{"fi_x", "fi_x: because", "fi_x: nonsense: text", "fi_[: internal: text"} {
		require.NoError(t, os.WriteFile(reasons, []byte(wrong), 0o644))
		require.ErrorContains(t, run(root, rdma, output), "reasons.txt:1:")
	}
}
