package collective

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// playRank is a rank in a process of its own.
func playRank(p jobtest.Part) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	job, err := bootstrap.Join(ctx, bootstrap.Options{Rank: p.Rank, Size: p.Size, Address: p.Store, Logger: quiet})
	if err != nil {
		return err
	}
	engine := &efa.Config{Providers: []string{p.Provider}, Require: true, Logger: quiet, PeerTimeout: peerTimeout}
	var c campaign
	if p.Words[0] == "campaign" {
		if err := json.Unmarshal([]byte(p.Words[1]), &c); err != nil {
			return err
		}
	}
	if c.Modes != nil {
		device, err := openDevice(p.Provider, *c.Modes)
		if err != nil {
			return err
		}
		engine.Device = device
	}
	world, err := comm.Open(ctx, comm.Config{Rank: p.Rank, Size: p.Size, Exchange: job.Exchange, Logger: quiet, Engine: engine})
	if err != nil {
		return err
	}
	// The store has done what it was for: who dies from here on is the world's to notice.
	if err := job.Close(); err != nil {
		return err
	}
	if p.Words[0] == "campaign" {
		return errors.Join(c.play(world), world.Close())
	}
	err = playDeath(ctx, world, p.Words[1])
	var lost *comm.RankError
	if closeErr := world.Close(); !errors.As(closeErr, &lost) {
		err = errors.Join(err, closeErr)
	}
	return err
}
