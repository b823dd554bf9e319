// Package discovery stands in for that of client-go: there is no cluster.
package discovery

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// DiscoveryClient finds nothing.
type DiscoveryClient struct{}

// NewDiscoveryClientForConfig fails.
func NewDiscoveryClientForConfig(*rest.Config) (*DiscoveryClient, error) {
	return nil, errors.New("there is no cluster")
}

// ServerResourcesForGroupVersion is never called.
func (*DiscoveryClient) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, errors.New("there is no cluster")
}
