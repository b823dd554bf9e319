// Package rest stands in for that of client-go: there is no cluster.
package rest

// Config names a cluster.
type Config struct{}
