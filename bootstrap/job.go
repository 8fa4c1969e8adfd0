package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/weft-go/weft/internal/keepalive"
)

// Options say how to join a job. The zero value goes by the environment.
type Options struct {
	// Size, if it is not 0, is the size of the job, and Rank this process's rank in
	// it: then the environment is not asked for these. LocalRank and LocalSize count
	// only if LocalSize is not 0, and Job is the name of the job, if it has one. Where Size
	// is 0 Job does not count, and a Rank or LocalRank that is not 0 is a *ConfigError, as
	// is a LocalRank without LocalSize.
	Rank, Size           int
	LocalRank, LocalSize int
	Job                  string
	// Launcher is the one whose variables to go by; empty means WEFT_LAUNCHER, or
	// the first that has set some. It does not count where Size is set.
	Launcher Launcher
	// Address is where the store is, as WEFT_STORE has it, which it goes before.
	Address string
	// Open, if it is not nil, opens the store instead. Join closes the store if it
	// fails later on.
	Open func(ctx context.Context, m Member) (Store, error)
	// Key is what all ranks must have, at least 16 bytes at random. nil means
	// WEFT_STORE_KEY or WEFT_STORE_KEY_FILE, or none. It is for stores over TCP; who
	// can join in a folder is what the rights of the folder say.
	Key []byte

	// Timeout bounds Join, and each Barrier and Exchange. 0 means 5 minutes, and
	// less than 0 no bound but that of their context.
	Timeout time.Duration
	// PeerTimeout is how long the host of a rank may be silent before it is lost,
	// and in a folder its process as well: 4 s to 24 h. 0 means 10 s, and a minute
	// in a folder, since that is what NFS may take to show what others wrote.
	PeerTimeout time.Duration
	// CloseTimeout bounds how long Close waits on the rank that serves the store
	// until the others have left. 0 means 1 minute.
	CloseTimeout time.Duration
	// Limits bounds what a store over TCP keeps.
	Limits Limits
	// Logger is told how this rank was found out and where the store is (Info). nil
	// means slog.Default().
	Logger *slog.Logger
	// Getenv reads the environment. nil means os.Getenv.
	Getenv func(name string) string
}

func (o Options) withDefaults() (Options, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	switch {
	case o.PeerTimeout != 0 && (o.PeerTimeout < keepalive.Least || o.PeerTimeout > keepalive.Most):
		return o, &ConfigError{"PeerTimeout", fmt.Sprintf("%v, it must be from %v to %v", o.PeerTimeout, keepalive.Least, keepalive.Most)}
	case o.CloseTimeout < 0:
		return o, &ConfigError{"CloseTimeout", fmt.Sprintf("%v, it must not be negative", o.CloseTimeout)}
	case o.Size == 0 && o.Rank != 0:
		return o, &ConfigError{"Rank", "it is set, but Size is not"}
	case o.Size < 0 || o.Size > MaxSize:
		return o, &ConfigError{"Size", fmt.Sprintf("%d, a job has 1 to %d ranks", o.Size, MaxSize)}
	case o.Size > 0 && (o.Rank < 0 || o.Rank >= o.Size):
		return o, &ConfigError{"Rank", fmt.Sprintf("%d, ranks go from 0 to %d", o.Rank, o.Size-1)}
	case o.LocalSize < 0 || o.LocalSize > o.Size || o.LocalRank < 0 || o.LocalRank > 0 && o.LocalRank >= o.LocalSize:
		return o, &ConfigError{"LocalRank", fmt.Sprintf("local rank %d of %d, in a job of %d", o.LocalRank, o.LocalSize, o.Size)}
	case len(o.Job) > mostJob:
		return o, &ConfigError{"Job", fmt.Sprintf("a name of %d bytes, at most %d are allowed", len(o.Job), mostJob)}
	}
	return o, nil
}

// Find says which rank this process is, without joining: by Options.Rank and Size,
// or by the environment. The error is a [ConfigError] or an [EnvironmentError].
func Find(options Options) (Member, error) {
	o, err := options.withDefaults()
	if err != nil {
		return Member{}, err
	}
	return o.find()
}

func (o *Options) find() (Member, error) {
	if o.Size == 0 {
		return environment(o.Getenv).member(o.Launcher)
	}
	m := Member{Rank: o.Rank, Size: o.Size, LocalRank: -1, LocalSize: -1, Job: o.Job, Launcher: LauncherOptions}
	if o.LocalSize > 0 {
		m.LocalRank, m.LocalSize = o.LocalRank, o.LocalSize
	}
	return m, nil
}

// Job is a job that this process has joined as one of its ranks. All methods may be
// called at the same time.
type Job struct {
	// Member is which rank this is, and what said so.
	Member
	// Store is what the ranks have in common. Close the job, not the store.
	Store Store

	address string
	timeout time.Duration

	mu     sync.Mutex
	rounds map[string]int // exchanges that are done, by name
	busy   map[string]bool
}

// Join finds out which rank this process is, opens the store, and returns when all
// ranks of the job have joined. What is wrong with the options is a [ConfigError], and with
// the environment an [EnvironmentError]; ranks that have not come in time are a [MissingError]; a store
// that does not let this rank in is a [RefusedError]; a rank that is lost meanwhile is a
// [LostError].
func Join(ctx context.Context, options Options) (*Job, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := o.find()
	if err != nil {
		return nil, err
	}
	limited, cancel := o.limit(ctx)
	defer cancel()
	store, where, err := o.open(limited, m)
	if err != nil {
		return nil, err
	}
	j := &Job{Member: m, Store: store, address: where, timeout: o.Timeout, rounds: map[string]int{}, busy: map[string]bool{}}
	o.Logger.Info("weft: joining a job", "rank", m.Rank, "size", m.Size, "launcher", string(m.Launcher), "store", where, "job", m.Job)
	if _, err := j.exchange(limited, joinName, where, nil); err != nil {
		j.abandon(err)
		return nil, err
	}
	return j, nil
}

// joinName is the exchange that all ranks begin with. No other has the name.
const joinName = ""

// abandon closes the store of a job that has not come about.
func (j *Job) abandon(why error) {
	if h, ok := j.Store.(interface{ giveUp(why error) }); ok {
		h.giveUp(why)
		return
	}
	_ = j.Store.Close()
}

// limit adds Timeout to a context.
func (o *Options) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return limit(ctx, o.Timeout)
}

func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// open opens the store of the job, and says where it is.
func (o *Options) open(ctx context.Context, m Member) (Store, string, error) {
	if o.Open != nil {
		s, err := o.Open(ctx, m)
		return s, "Options.Open", err
	}
	e := environment(o.Getenv)
	a, err := e.storeAddress(m, o.Address)
	if err != nil {
		return nil, "", err
	}
	key, err := e.key(o.Key)
	if err != nil {
		return nil, "", err
	}
	var s Store
	switch {
	case a.folder != "":
		if key != nil {
			return nil, "", &ConfigError{"Key", "a store in a folder has none: who may write there may join"}
		}
		s, err = openFolder(ctx, a.folder, m, o.PeerTimeout, o.CloseTimeout)
	case a.served || m.Rank > 0:
		s, err = o.dial(ctx, m, a, key)
	default:
		s, err = o.host(ctx, m, a, key)
	}
	return s, a.text, err
}

// Address is where the store is, as WEFT_STORE has it; "memory" where this is the
// only rank.
func (j *Job) Address() string { return j.address }

// Context ends when the job does: its cause is a *[LostError] when a rank is lost,
// and net.ErrClosed after Close.
func (j *Job) Context() context.Context { return j.Store.Context() }

// Close leaves the job in order, so that this rank is not lost. It does not wait for
// the others, but on the rank that serves the store, where it waits until they have
// left, for Options.CloseTimeout at most.
func (j *Job) Close() error {
	if j.Context().Err() == nil {
		// For errors that name the ranks that are missing. Close says it as well.
		ctx, cancel := context.WithTimeout(context.Background(), mostGoodbye)
		_ = j.Store.Set(ctx, leftPrefix+strconv.Itoa(j.Rank), nil)
		cancel()
	}
	return j.Store.Close()
}

// leftPrefix is that of the keys of ranks that have left.
const leftPrefix = "weft/left/"

// isJobsEnd says that err is how the job has ended.
func (j *Job) isJobsEnd(err error) bool {
	return j.Context().Err() != nil && errors.Is(err, context.Cause(j.Context()))
}
