// Renders and lints a chart with the packages of Helm, as `helm template` and `helm lint --strict` do. Helm's own
// program also talks to clusters and registries, and takes twice as long to build.
//
//	chart-tools template|lint CHART RELEASE NAMESPACE [KUBERNETES-VERSION] <values.yaml
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// What Helm 3.22 assumes if it is not told a version.
const defaultKubernetes = "1.37.0"

type release struct {
	chart, name, namespace string
	kubernetes             *chartutil.KubeVersion
	values                 chartutil.Values
}

func main() {
	// Helm logs that it follows symbolic links.
	log.SetOutput(io.Discard)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 4 {
		args = append(args, defaultKubernetes)
	}
	if len(args) != 5 {
		return errors.New("usage: chart-tools template|lint CHART RELEASE NAMESPACE [KUBERNETES-VERSION]")
	}
	kubernetes, err := chartutil.ParseKubeVersion(args[4])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	values, err := chartutil.ReadValues(text)
	if err != nil {
		return err
	}
	wanted := release{args[1], args[2], args[3], kubernetes, values}
	if args[0] == "lint" {
		return wanted.lint()
	}
	return wanted.template()
}

func (r release) template() error {
	chart, err := loader.Load(r.chart)
	if err != nil {
		return err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *r.kubernetes
	if !chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, r.kubernetes.String()) {
		return fmt.Errorf("the chart is for Kubernetes %s, not for %s", chart.Metadata.KubeVersion, r.kubernetes)
	}
	options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, r.values, options, capabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	delete(files, path.Join(chart.Name(), "templates", "NOTES.txt"))
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var output strings.Builder
	for _, each := range manifests {
		fmt.Fprintf(&output, "---\n# Source: %s\n%s\n", each.Name, each.Content)
	}
	fmt.Println(strings.TrimSpace(output.String()))
	for _, each := range hooks {
		fmt.Printf("---\n# Source: %s\n%s\n", each.Path, each.Manifest)
	}
	return nil
}

func (r release) lint() error {
	linter := lint.AllWithKubeVersion(r.chart, r.values, r.namespace, r.kubernetes)
	var faults []string
	for _, message := range linter.Messages {
		if message.Severity >= support.WarningSev {
			faults = append(faults, message.Error())
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}
