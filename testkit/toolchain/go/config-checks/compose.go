package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/sirupsen/logrus"
)

// Compose only warns about a variable that is not set; here it is an error.
type refuseWarnings struct{ first string }

func (hook *refuseWarnings) Levels() []logrus.Level {
	return []logrus.Level{logrus.WarnLevel, logrus.ErrorLevel}
}

func (hook *refuseWarnings) Fire(entry *logrus.Entry) error {
	if hook.first == "" {
		hook.first = entry.Message
	}
	return nil
}

func readCompose(directory, envFile, profile string) error {
	hook := &refuseWarnings{}
	logrus.SetOutput(io.Discard)
	logrus.AddHook(hook)
	options, err := cli.NewProjectOptions(
		[]string{filepath.Join(directory, "docker-compose.yml")},
		cli.WithWorkingDirectory(directory),
		cli.WithEnvFiles(envFile),
		cli.WithDotEnv,
		cli.WithProfiles([]string{profile}),
	)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	if hook.first != "" {
		return fmt.Errorf("%s", hook.first)
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
