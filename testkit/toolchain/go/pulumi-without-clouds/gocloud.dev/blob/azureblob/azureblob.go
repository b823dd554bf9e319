// Package azureblob stands in for the driver of azblob://.
package azureblob

import (
	"context"
	"errors"
	"net/url"

	"gocloud.dev/blob"
)

// Scheme is that of addresses of the driver.
const Scheme = "azblob"

var errLeftOut = errors.New("this build for tests has no driver of azblob://")

// ServiceURLOptions has no members: this build has no cloud drivers.
type ServiceURLOptions struct{}

// NewDefaultServiceURLOptions returns no options.
func NewDefaultServiceURLOptions() *ServiceURLOptions { return &ServiceURLOptions{} }

// NewDefaultClient fails: this build has no cloud drivers.
func NewDefaultClient() error { return errLeftOut }

// URLOpener has the members that the CLI sets.
type URLOpener struct {
	MakeClient        func() error
	ServiceURLOptions ServiceURLOptions
}

// OpenBucketURL fails: this build has no cloud drivers.
func (o *URLOpener) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) {
	return nil, o.MakeClient()
}
