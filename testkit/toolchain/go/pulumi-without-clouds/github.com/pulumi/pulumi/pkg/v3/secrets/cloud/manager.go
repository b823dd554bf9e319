// Package cloud stands in for secrets providers that are a cloud's key service.
package cloud

import (
	"encoding/json"
	"errors"

	"github.com/pulumi/pulumi/pkg/v3/secrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// Type is the type of secrets managed by this secrets provider
const Type = "cloud"

var errLeftOut = errors.New("this build for tests has no secrets providers of clouds")

// EditProjectStack fails: this build has no cloud drivers.
func EditProjectStack(*workspace.ProjectStack, json.RawMessage) error { return errLeftOut }

// NewCloudSecretsManagerFromState fails: this build has no cloud drivers.
func NewCloudSecretsManagerFromState(json.RawMessage) (secrets.Manager, error) {
	return nil, errLeftOut
}

// NewCloudSecretsManager fails: this build has no cloud drivers.
func NewCloudSecretsManager(*workspace.ProjectStack, string, bool) (secrets.Manager, error) {
	return nil, errLeftOut
}
