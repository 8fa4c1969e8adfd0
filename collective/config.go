package collective

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Variable is the environment variable that has parameters for all communicators: a list
// such as "fanout=4,cache-pages=64,allreduce=ring", with the names of [Config]. What a
// program sets by Configure comes first. A rank on which it is wrong has a *ConfigError from
// its calls, and the others an *AbortError.
const Variable = "WEFT_COLLECTIVE"

// Config has the parameters of the collective calls of a communicator. All ranks must
// have the same: of those that do not, the first calls fail with a *ConfigError or, where
// another rank has found it, an *AbortError. The zero value works.
type Config struct {
	// Fanout ("fanout") is how many children a rank has in the trees of Bcast and Reduce.
	// 0 means 2.
	Fanout int
	// CachePages ("cache-pages") is the size of the cache in pages of 4 KiB. 0 means 32,
	// and a negative one none. On shm, other ranks map caches of up to about 2,000 pages, of up to
	// 128 communicators of the process.
	CachePages int
	// Chunk ("chunk") is how many bytes are handed on at once, at least, along trees and, but for shm,
	// in rings; and on shm of what goes directly to the root of a Gather, or from that of a Scatter.
	// 0 means 256 KiB. Of long calls it is more: there are up to 64 pieces, and on shm those of
	// 4 MiB and more, if all ranks have more than 8 MiB, have 1 MiB.
	Chunk int
	// Algorithms ("allreduce=ring" and so on) are those to take; of others, one is chosen
	// by size. One that is given here goes before all Choices of its collective. One that
	// does not keep the order of ranks is not taken for operators that do not commute: these
	// get another without a word.
	Algorithms map[schedule.Collective]schedule.Algorithm
	// Choices ("allreduce/3/65537=ring" and so on, for 3 ranks and 65,537 bytes or more) are
	// lines behind those of the table by which algorithms are chosen.
	Choices []Choice
}

const (
	pageSize     = 4096
	mostPages    = 1 << 20
	defaultPages = 32
	defaultChunk = 256 << 10
	// mostPieces is how many pieces a put may be cut into, so that their numbers go into
	// words.
	mostPieces = 64
)

// Configure sets the parameters of a communicator, before its first call, on all ranks
// alike. Errors: *ConfigError, also where it comes too late, and those of the calls.
func Configure(c *comm.Comm, config Config) error {
	g, err := groupOf(c, &config)
	if err != nil {
		return err
	}
	if g.given != &config {
		closed := false
		c.Reactor().Do(func(progress) { closed = g.closed })
		if closed {
			return errClosed
		}
		return &ConfigError{"", "it comes too late: the communicator has had its first call, or its Config"}
	}
	return nil
}

// withDefaults fills in what is not set: from the variable, and then the defaults.
func (c Config) withDefaults() (Config, error) {
	algorithms, choices := c.Algorithms, c.Choices
	c.Algorithms, c.Choices = make(map[schedule.Collective]schedule.Algorithm), nil
	if err := c.parse(os.Getenv(Variable)); err != nil {
		return c, err
	}
	for _, line := range choices {
		if err := line.check(); err != nil {
			return c, err
		}
		delete(c.Algorithms, line.Collective)
	}
	c.Choices = append(c.Choices, choices...)
	for kind, a := range algorithms {
		if err := checkAlgorithm(kind, a); err != nil {
			return c, err
		}
		c.Algorithms[kind] = a
	}
	return c, c.fill()
}

// parameter is a number of a Config, and what the variable calls it.
type parameter struct {
	field, entry string
	value        *int
	usual, most  int
}

func (c *Config) parameters() []parameter {
	return []parameter{
		{"Fanout", "fanout", &c.Fanout, 2, schedule.MaxSize},
		{"CachePages", "cache-pages", &c.CachePages, defaultPages, mostPages},
		{"Chunk", "chunk", &c.Chunk, defaultChunk, 1 << 30},
	}
}

// wrong says what is wrong with a number, of which 0 is the usual one.
func (p *parameter) wrong(n int) string {
	none := ""
	if p.field == "CachePages" {
		n, none = max(n, 0), ", or less for none"
	}
	if n >= 0 && n <= p.most {
		return ""
	}
	return fmt.Sprintf("%d, want 1 to %d, or 0 for %d%s", n, p.most, p.usual, none)
}

// fill puts defaults where nothing is set.
func (c *Config) fill() error {
	for _, p := range c.parameters() {
		if detail := p.wrong(*p.value); detail != "" {
			return &ConfigError{p.field, detail}
		}
		if *p.value == 0 {
			*p.value = p.usual
		}
		*p.value = max(*p.value, 0)
	}
	return nil
}

// parse takes the list of the variable, for what is not set.
func (c *Config) parse(list string) error {
	for _, entry := range strings.Split(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		known := c.parameters()
		i := slices.IndexFunc(known, func(p parameter) bool { return p.entry == name })
		if i < 0 {
			if strings.Contains(name, "/") {
				line, err := ParseChoice(entry)
				if err != nil {
					return &ConfigError{Variable, err.Error()}
				}
				c.Choices = append(c.Choices, line)
				continue
			}
			kind, err := schedule.ParseCollective(name)
			if err != nil {
				return &ConfigError{Variable, fmt.Sprintf("%q, want fanout, cache-pages, chunk, or a collective: %v", name, err)}
			}
			a, err := schedule.ParseAlgorithm(value)
			if err == nil {
				err = checkAlgorithm(kind, a)
			}
			if err != nil {
				return &ConfigError{Variable, fmt.Sprintf("%s: %v", entry, err)}
			}
			c.Algorithms[kind] = a
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return &ConfigError{Variable, fmt.Sprintf("%q, want %s=NUMBER", entry, name)}
		}
		if detail := known[i].wrong(n); detail != "" {
			return &ConfigError{Variable, name + "=" + detail}
		}
		if number := known[i].value; *number == 0 {
			if *number = n; n == 0 && name == "cache-pages" {
				*number = -1
			}
		}
	}
	return nil
}

// ParseChoice returns the line of a text such as "allreduce/3/65537=ring". Errors:
// *ArgumentError.
func ParseChoice(text string) (Choice, error) {
	condition, algorithm, _ := strings.Cut(strings.TrimSpace(text), "=")
	parts := strings.Split(condition, "/")
	wrong := func(err error) (Choice, error) {
		want := "COLLECTIVE/RANKS/BYTES=ALGORITHM"
		if err != nil {
			want += fmt.Sprintf(" (%v)", err)
		}
		return Choice{}, &ArgumentError{"choice", strconv.Quote(text), want}
	}
	if len(parts) != 3 {
		return wrong(nil)
	}
	var c Choice
	var err error
	if c.Collective, err = schedule.ParseCollective(parts[0]); err != nil {
		return wrong(err)
	}
	if c.Ranks, err = strconv.Atoi(parts[1]); err != nil {
		return wrong(nil)
	}
	if c.Bytes, err = strconv.Atoi(parts[2]); err != nil {
		return wrong(nil)
	}
	if c.Algorithm, err = schedule.ParseAlgorithm(algorithm); err != nil {
		return wrong(err)
	}
	if err = c.check(); err != nil {
		return Choice{}, err
	}
	return c, nil
}

func checkAlgorithm(kind schedule.Collective, a schedule.Algorithm) error {
	if !schedule.Known(kind) {
		return &ArgumentError{"collective", strconv.Itoa(int(kind)), fmt.Sprintf("one of %v", schedule.Collectives())}
	}
	always := a == schedule.Default || a == schedule.Provider
	if schedule.Has(kind, a) || always {
		return nil
	}
	return &ArgumentError{"algorithm", a.String(), fmt.Sprintf("one of %v, for %v", schedule.Algorithms(kind), kind)}
}
