package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cloud is a directory: objects/<id>.json is what exists, control.json tells operations how to misbehave,
// started/<name>.<op> appears when an operation begins, log.jsonl lists every operation, ids/ makes ids unique.
type cloud struct{ dir string }

// object is the live thing. Tests edit the file to cause drift and remove it to make the thing vanish.
type object struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Value       string  `json:"value"`
	ReplaceOn   string  `json:"replaceOn"`
	SecretValue string  `json:"secretValue"`
	Size        float64 `json:"size"`
	Initialised bool    `json:"initialised"`
	Revision    int     `json:"revision"`
}

// control is read anew by each operation, so a test can change it between and during runs.
type control struct {
	FailCreate    []string         `json:"failCreate"`
	FailUpdate    []string         `json:"failUpdate"`
	FailDelete    []string         `json:"failDelete"`
	FailRead      []string         `json:"failRead"`
	PartialCreate []string         `json:"partialCreate"`
	SlowMs        map[string]int64 `json:"slowMs"`
	SlowAfterMs   map[string]int64 `json:"slowAfterMs"`
	AbortOnCancel bool             `json:"abortOnCancel"`
}

// target is what the keys of control.json are matched against.
type target struct{ op, name, id, value string }

func (t target) matches(key string) bool {
	switch key {
	case "":
		return false
	case "*", "*." + t.op, t.name, t.name + "." + t.op, t.id, t.value:
		return true
	}
	return false
}

func (t target) in(keys []string) bool { return slices.ContainsFunc(keys, t.matches) }

func (t target) delay(delays map[string]int64) time.Duration {
	longest := int64(0)
	for key, ms := range delays {
		if t.matches(key) {
			longest = max(longest, ms)
		}
	}
	return time.Duration(longest) * time.Millisecond
}

func (c cloud) control() (control, error) {
	var found control
	err := readJSON(filepath.Join(c.dir, "control.json"), &found)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// newID gives name-1, name-2 and so on, never one that was given before: runs against two backends get equal ids.
func (c cloud) newID(name string) (string, error) {
	dir := filepath.Join(c.dir, "ids")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		file, err := os.OpenFile(filepath.Join(dir, fileName(id)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return id, file.Close()
	}
}

// get answers nil when the object does not exist.
func (c cloud) get(id string) (*object, error) {
	var found object
	err := readJSON(c.objectPath(id), &found)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func (c cloud) put(o *object) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return c.write(c.objectPath(o.ID), text)
}

func (c cloud) remove(id string) error {
	err := os.Remove(c.objectPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (c cloud) markStarted(t target) error {
	return c.write(filepath.Join(c.dir, "started", fileName(t.name)+"."+t.op), []byte(t.id))
}

func (c cloud) log(t target, phase string) error {
	line, err := json.Marshal(map[string]any{
		"time": time.Now().UTC().Format(time.RFC3339Nano), "op": t.op, "name": t.name, "id": t.id, "phase": phase,
	})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(c.dir, "log.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func (c cloud) objectPath(id string) string {
	return filepath.Join(c.dir, "objects", fileName(id)+".json")
}

func fileName(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

// write replaces a file whole, so that a reader (or a kill) never meets half of it.
func (c cloud) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(c.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
