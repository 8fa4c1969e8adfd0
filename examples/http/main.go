// Command http is a file server over weft, and a client of it: package net/http, with
// connections of package efa.
//
//	go run ./examples/http -listen 127.0.0.1:7470 -dir docs     # in one terminal,
//	go run ./examples/http http://127.0.0.1:7470/README.md      # and in another
//
// What it takes is in serve and get: a weft listener is a net.Listener, and a reactor
// dials for an http.Transport.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weft-go/weft/efa"
)

func main() {
	listen := flag.String("listen", "", "serve at this `address`")
	dir := flag.String("dir", ".", "serve the files of this `folder`")
	provider := flag.String("provider", "", "the libfabric provider; empty for the best there is")
	flag.Parse()
	log.SetFlags(0)
	config := &efa.Config{}
	if *provider != "" {
		config.Providers, config.Require = []string{*provider}, true
	}
	if err := run(*listen, *dir, config); err != nil {
		log.Fatal(err)
	}
}

// run does what it is told until that is done, or a signal comes.
func run(listen, dir string, config *efa.Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch {
	case listen != "":
		return serve(ctx, listen, dir, config)
	case flag.NArg() == 1:
		return get(ctx, flag.Arg(0), os.Stdout, config)
	default:
		return errors.New("usage: http -listen ADDRESS [-dir FOLDER], or http URL")
	}
}

// serve serves the files of a folder until ctx ends, and lets requests under way end.
func serve(ctx context.Context, address, dir string, config *efa.Config) error {
	l, err := efa.Listen(ctx, address, config)
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s over %s\n", l.Addr(), l.Provider())
	server := http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(last)
}

// get writes what is at a URL.
func get(ctx context.Context, url string, to io.Writer, config *efa.Config) error {
	r, err := efa.Open(config)
	if err != nil {
		return err
	}
	defer r.Close()
	transport := &http.Transport{DialContext: r.DialContext}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	_, err = io.Copy(to, answer.Body)
	return err
}
