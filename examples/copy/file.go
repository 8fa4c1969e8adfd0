package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weft-go/weft/efa"
)

// A file goes as a header in JSON, its bytes in messages of up to a chunk, and its
// sha256. The answer is "ok", or what was wrong.
const (
	chunk         = 1 << 20
	ok            = "ok"
	longestAnswer = 1024
)

type header struct {
	Name string
	Size int64
}

func send(ctx context.Context, path, address string, config *efa.Config) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c, err := efa.Dial(ctx, address, config)
	if err != nil {
		return err
	}
	defer c.Close()
	h, err := json.Marshal(header{info.Name(), info.Size()})
	if err != nil {
		return err
	}
	sum, err := upload(ctx, c, h, f, info.Size())
	if err != nil && !errors.Is(err, efa.ErrPeerClosed) {
		return err
	}
	// A receiver that has closed has said why.
	answer := make([]byte, longestAnswer)
	n, err := c.ReadMessage(ctx, answer)
	if err != nil {
		return err
	}
	if string(answer[:n]) != ok {
		return fmt.Errorf("the receiver says: %s", answer[:n])
	}
	fmt.Printf("%s: %d bytes over %s, sha256 %x verified\n", info.Name(), info.Size(), c.Provider(), sum)
	return c.Close()
}

// upload writes the header, the bytes and the sha256, which it returns.
func upload(ctx context.Context, c *efa.Conn, header []byte, f io.Reader, size int64) ([]byte, error) {
	if err := c.WriteMessage(ctx, header); err != nil {
		return nil, err
	}
	sum := sha256.New()
	for left := size; left > 0; {
		// It is read to registered memory, and goes from there without a copy.
		b, err := c.Buffer(int(min(left, chunk)))
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(f, b.Bytes()); err != nil {
			b.Release()
			return nil, fmt.Errorf("the file has become shorter: %w", err)
		}
		sum.Write(b.Bytes())
		left -= int64(len(b.Bytes()))
		if err := c.WriteBuffer(ctx, b); err != nil {
			b.Release()
			return nil, err
		}
	}
	return sum.Sum(nil), c.WriteMessage(ctx, sum.Sum(nil))
}

// receive takes a file, tells the sender how that went, and returns its name and size.
func receive(ctx context.Context, c *efa.Conn, root *os.Root) (string, int64, error) {
	buf := make([]byte, chunk)
	n, err := c.ReadMessage(ctx, buf)
	if err != nil {
		return "", 0, err
	}
	var h header
	err = json.Unmarshal(buf[:n], &h)
	switch {
	case err != nil:
	case h.Name != filepath.Base(h.Name) || !filepath.IsLocal(h.Name) || h.Name == ".":
		err = fmt.Errorf("%q is not the name of a file", h.Name)
	case h.Size < 0:
		err = fmt.Errorf("%s: a size of %d", h.Name, h.Size)
	default:
		err = store(ctx, c, root, h, buf)
	}
	answer := ok
	if err != nil {
		answer = err.Error()
	}
	return h.Name, h.Size, errors.Join(err, c.WriteMessage(ctx, []byte(answer)[:min(len(answer), longestAnswer)]), c.Close())
}

// store writes the file under another name, until it is complete and verified.
func store(ctx context.Context, c *efa.Conn, root *os.Root, h header, buf []byte) (err error) {
	temporary := "." + rand.Text()
	f, err := root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err == nil {
			err = root.Rename(temporary, h.Name)
		}
		if err != nil {
			err = errors.Join(err, root.Remove(temporary))
		}
	}()
	sum := sha256.New()
	for left := h.Size; left > 0; {
		n, err := c.ReadMessage(ctx, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s: a message of nothing, %d bytes from its end", h.Name, left)
		}
		if int64(n) > left {
			return fmt.Errorf("%s is longer than its %d bytes", h.Name, h.Size)
		}
		sum.Write(buf[:n])
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	n, err := c.ReadMessage(ctx, buf)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), buf[:n]) {
		return fmt.Errorf("%s: what arrived has the sha256 %x, and what was sent %x", h.Name, sum.Sum(nil), buf[:n])
	}
	return nil
}
