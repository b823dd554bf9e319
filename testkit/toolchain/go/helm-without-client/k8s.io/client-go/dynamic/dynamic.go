// Package dynamic stands in for that of client-go: there is no cluster.
package dynamic

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Interface has the resources of a cluster.
type Interface interface {
	Resource(schema.GroupVersionResource) NamespaceableResourceInterface
}

// ResourceInterface reads objects.
type ResourceInterface interface {
	Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
	List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// NamespaceableResourceInterface reads objects, also those of a namespace.
type NamespaceableResourceInterface interface {
	Namespace(string) ResourceInterface
	ResourceInterface
}

// NewForConfig fails.
func NewForConfig(*rest.Config) (Interface, error) { return nil, errors.New("there is no cluster") }
