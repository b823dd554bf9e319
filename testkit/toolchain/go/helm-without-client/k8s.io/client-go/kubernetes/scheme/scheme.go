// Package scheme stands in for that of client-go, whose types of Kubernetes are most of the code to compile. Without
// them, Helm does not notice that a version of an API is deprecated: the schemas of each version of Kubernetes do.
package scheme

import "k8s.io/apimachinery/pkg/runtime"

// Scheme knows no types.
var Scheme = runtime.NewScheme()

// AddToScheme adds no types.
func AddToScheme(*runtime.Scheme) error { return nil }
