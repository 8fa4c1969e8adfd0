// Package docker holds images of weft, compose files, and files for Kubernetes, Slurm
// and AWS ParallelCluster. Its tests, which make docker-test runs, are a module of their
// own: they need the Docker engine, and the checker of Kubernetes' manifests takes long
// to compile. docs/docker.md says what is here.
package docker
