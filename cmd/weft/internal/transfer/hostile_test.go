package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script builds a sender's stream record by record.
type script struct{ b []byte }

func newScript() *script {
	return &script{b: appendSpeech(nil, recordHello, hello{Protocol: protocolName, Version: protocolVersion})}
}

func (s *script) record(kind recordKind, payload string) *script {
	s.b = appendRecord(s.b, kind, []byte(payload))
	return s
}

func (s *script) file(name string, size int64) *script {
	s.b = entry{name: name, mode: 0o644, size: size, modified: time.Unix(1, 0)}.append(s.b, recordFile)
	return s
}

func (s *script) folder(name string) *script {
	s.b = entry{name: name, mode: 0o755, modified: time.Unix(1, 0)}.append(s.b, recordFolder)
	return s
}

func (s *script) whole(name, content string) *script {
	sum := sha256.Sum256([]byte(content))
	return s.file(name, int64(len(content))).record(recordData, content).record(recordFileEnd, string(sum[:]))
}

func (s *script) end(sent totals) *script {
	s.b = appendSpeech(s.b, recordEnd, sent)
	return s
}

// receive plays messages to a receiver and returns its error, and its verdict
// as the sender sees it.
func receive(t *testing.T, dir string, messages ...[]byte) (answer, error) {
	t.Helper()
	a, b := memoryPair()
	go func() {
		defer a.Close()
		for _, message := range messages {
			if a.WriteMessage(t.Context(), message) != nil {
				return
			}
		}
	}()
	_, err := Receive(t.Context(), b, openRoot(t, dir), Options{})
	b.Close()
	return readAnswer(t.Context(), a), err
}

func TestNamesThatWouldLeadOut(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a/b", "nul\x00byte",
		strings.Repeat("n", maxName+1), strings.Repeat("n", 100_000), partialName(),
	} {
		for _, kind := range []recordKind{recordFile, recordFolder} {
			parent := t.TempDir()
			dir := filepath.Join(parent, "dir")
			require.NoError(t, os.Mkdir(dir, 0o755))
			s := newScript()
			s.b = entry{name: name, mode: 0o644, size: 1}.append(s.b, kind)
			s.record(recordData, "x")
			answer, err := receive(t, dir, s.b)
			var file *FileError
			require.ErrorAs(t, err, &file, "%q", name)
			require.NotNil(t, answer.verdict.Failure, "%q", name)
			require.Len(t, tree(t, parent), 1, "%q", name)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{`back\slash`, "...", "-rf", "\xff\xfe", strings.Repeat("n", maxName), "new\nline"} {
		_, err := receive(t, dir, newScript().whole(name, "c").end(totals{Files: 1, Bytes: 1}).b)
		require.NoError(t, err)
		require.Equal(t, "c", tree(t, dir)[name].content)
	}
}

func TestLinksInTheReceiversFolder(t *testing.T) {
	parent := t.TempDir()
	dir, outside := filepath.Join(parent, "dir"), filepath.Join(parent, "outside")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Mkdir(outside, 0o755))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "relative")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "up")))
	for _, name := range []string{"relative", "absolute", "up"} {
		answer, err := receive(t, dir, newScript().folder(name).whole("x", "escaped").record(recordFolderEnd, "").b)
		var file *FileError
		require.ErrorAs(t, err, &file)
		require.NotNil(t, answer.verdict.Failure)
	}
	require.Empty(t, tree(t, outside))
	require.Len(t, tree(t, parent), 5)
}

func TestStreamsThatBreakTheProtocol(t *testing.T) {
	deep := newScript()
	for range MaxDepth + 1 {
		deep.folder("d")
	}
	other := &script{b: appendSpeech(nil, recordHello, hello{Protocol: "weft-ping", Version: 1})}
	newer := &script{b: appendSpeech(nil, recordHello, hello{Protocol: protocolName, Version: 99})}
	huge := newScript().file("x", 1<<62)
	for name, messages := range map[string][][]byte{
		"nothing":                   {},
		"an empty message":          {{}},
		"no hello":                  {newScript().whole("x", "c").b[len(newScript().b):]},
		"another protocol":          {other.b},
		"a newer version":           {newer.b},
		"two hellos":                {append(newScript().b, newScript().b...)},
		"half a prefix":             {newScript().b[:3]},
		"half a record":             {newScript().b[:len(newScript().b)-1]},
		"not JSON":                  {newScript().record(recordEnd, "{").b},
		"long JSON":                 {newScript().record(recordEnd, strings.Repeat(" ", maxSpeech)+"{}").b},
		"a message too long":        {make([]byte, MaxMessage+1)},
		"an unknown kind":           {newScript().record(77, "").b},
		"a verdict":                 {newScript().record(recordVerdict, "{}").b},
		"a short header":            {newScript().record(recordFile, "abc").b},
		"a negative size":           {newScript().file("x", -1).b},
		"data without a file":       {newScript().record(recordData, "x").b},
		"empty data":                {newScript().file("x", 1).record(recordData, "").b},
		"more data than announced":  {newScript().file("x", 1).record(recordData, "xy").b},
		"less data than announced":  {newScript().file("x", 2).record(recordData, "x").record(recordFileEnd, strings.Repeat("s", 32)).b},
		"a short checksum":          {newScript().file("x", 0).record(recordFileEnd, "s").b},
		"a wrong checksum":          {newScript().file("x", 0).record(recordFileEnd, strings.Repeat("s", 32)).b},
		"an end of no file":         {newScript().record(recordFileEnd, strings.Repeat("s", 32)).b},
		"an end of no folder":       {newScript().record(recordFolderEnd, "").b},
		"a file in a file":          {newScript().file("x", 1).file("y", 1).b},
		"a folder in a file":        {newScript().file("x", 1).folder("y").b},
		"a folder's end in a file":  {newScript().folder("d").file("x", 1).record(recordFolderEnd, "").b},
		"the end in a file":         {newScript().file("x", 1).end(totals{}).b},
		"the end in a folder":       {newScript().folder("x").end(totals{}).b},
		"other totals":              {newScript().end(totals{Files: 1}).b},
		"more after the end":        {newScript().end(totals{}).file("x", 0).b},
		"folders too deep":          {deep.b},
		"a huge file that ends":     {huge.b, make([]byte, 1)},
		"gone in the middle":        {newScript().file("x", 2).record(recordData, "x").b},
		"a sender that gives up":    {newScript().file("x", 2).record(recordData, "x").record(recordAbort, `{"text":"no\u001b[2J more"}`).b},
		"an abort before the hello": {newScript().record(recordAbort, `{}`).b[len(newScript().b):]},
	} {
		dir := t.TempDir()
		answer, err := receive(t, dir, messages...)
		require.Error(t, err, name)
		require.False(t, answer.err == nil && answer.verdict.Failure == nil, "%s: the sender is told of success", name)
		require.NotContains(t, err.Error(), "\x1b", name)
		for path, n := range tree(t, dir) {
			require.True(t, n.mode.IsDir(), "%s: %s is left", name, path)
		}
	}
}

// A sender that goes on after a failure is drained for a while, not for ever,
// and what is complete stays.
func TestCompleteFilesStay(t *testing.T) {
	dir := t.TempDir()
	answer, err := receive(t, dir, newScript().whole("good", "1").file("bad", 5).record(recordData, "123456").b,
		make([]byte, 100), make([]byte, 100))
	require.ErrorIs(t, err, ErrProtocol)
	require.NotNil(t, answer.verdict.Failure)
	require.Len(t, tree(t, dir), 1)
	require.Equal(t, "1", tree(t, dir)["good"].content)
}

func TestAnswersThatAreNoVerdict(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "name"), []byte("x"), 0o644)
	for name, message := range map[string][]byte{
		"empty":        {},
		"too long":     make([]byte, recordPrefix+maxSpeech+1),
		"another kind": appendRecord(nil, recordEnd, []byte("{}")),
		"two records":  appendRecord(appendRecord(nil, recordVerdict, []byte("{}")), recordEnd, nil),
		"not JSON":     appendRecord(nil, recordVerdict, []byte("verified")),
		"wrong counts": appendRecord(nil, recordVerdict, []byte(`{"verified":{"files":2,"bytes":1}}`)),
		"no counts":    appendRecord(nil, recordVerdict, []byte(`{}`)),
	} {
		a, b := memoryPair()
		require.NoError(t, b.WriteMessage(t.Context(), message))
		summary, err := Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), Options{})
		require.ErrorIs(t, err, ErrProtocol, name)
		require.False(t, summary.Verified, name)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(newScript().folder("d").whole("x", "content").record(recordFolderEnd, "").end(totals{Files: 1, Folders: 1, Bytes: 7}).b)
	f.Add(newScript().folder("..").whole("x", "content").b)
	f.Add(newScript().file("/x", 3).record(recordData, "abc").b)
	f.Fuzz(func(t *testing.T, message []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "dir")
		require.NoError(t, os.Mkdir(dir, 0o755))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		// No connection and no goroutine, so that the same input takes the
		// same path every time.
		in := &intake{free: make(chan []byte, 1), full: make(chan []byte, 1), err: io.EOF}
		in.full <- message
		close(in.full)
		s := &session{sink: newSink(root)}
		if s.run(in) == nil {
			require.False(t, s.sink.busy())
		}
		s.sink.abandon()
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			require.False(t, isPartial(d.Name()), path)
			return nil
		})
	})
}

func TestRecordsRoundTrip(t *testing.T) {
	e := entry{name: "n\xff", mode: 0o751, size: 1 << 40, modified: time.Unix(5, 6)}
	kind, payload, rest, err := cutRecord(append(e.append(nil, recordFile), "more"...))
	require.NoError(t, err)
	require.Equal(t, recordFile, kind)
	require.Equal(t, "more", string(rest))
	back, err := parseEntry(payload)
	require.NoError(t, err)
	require.Equal(t, e, back)

	_, _, _, err = cutRecord(append([]byte{1, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0}, 64)...))
	require.ErrorIs(t, err, ErrProtocol)
}

func TestGreetings(t *testing.T) {
	protocol, version, err := ReadGreeting(Greeting("weft-ping", 3))
	require.NoError(t, err)
	require.Equal(t, "weft-ping", protocol)
	require.Equal(t, 3, version)
	for _, message := range [][]byte{nil, {1}, appendRecord(nil, recordHello, []byte("x")), Refusal(ErrLost)} {
		_, _, err := ReadGreeting(message)
		require.ErrorIs(t, err, ErrProtocol)
	}

	err = ReadRefusal(Refusal(protocolError("wrong\x07 door")))
	var peer *PeerError
	require.ErrorAs(t, err, &peer)
	require.ErrorIs(t, err, ErrProtocol)
	require.Contains(t, peer.Text, "wrong? door")
	for _, message := range [][]byte{nil, Greeting("x", 1), appendRecord(nil, recordVerdict, []byte("{}")), appendRecord(nil, recordVerdict, nil)} {
		err := ReadRefusal(message)
		require.ErrorIs(t, err, ErrProtocol)
		require.False(t, errors.As(err, &peer))
	}
}
