package cli

import "github.com/spf13/cobra"

// newEnvSetupCmd returns a command without any cloud: this build has no clients of clouds.
func newEnvSetupCmd(*envCommand) *cobra.Command {
	return &cobra.Command{Use: "setup", Short: "Left out of this build for tests"}
}
