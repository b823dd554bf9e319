// A file system in memory, for tests, that loses at a power cut what was not synced.
//
//	lossy-disk <mount point>
//
// Says `ready` on stdout when mounted, then obeys lines on stdin and answers each with `ok …` or `error …`:
//
//	cut              lose everything that was not synced; every call fails from now on
//	cut <seed>       the same, but keep a part of it that the seed chooses: single pages, names, sizes
//	restore          mount at the same place what the last cut left
//	stats            `ok <syncs> <bytes written>` since the last mount
//
// Ends, and unmounts, when stdin ends. Needs the right to mount (root).
package main

import (
	"bufio"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func mount(root *inode, at string) (*disk, error) {
	d := newDisk(root)
	server, err := fuse.NewServer(d, at, &fuse.MountOptions{
		AllowOther:         true,
		DirectMountStrict:  true,
		DisableReadDirPlus: true,
		MaxWrite:           1 << 20,
		Name:               "lossy-disk",
		FsName:             "lossy-disk",
		Options:            []string{"default_permissions"},
		Logger:             log.New(os.Stderr, "", 0),
	})
	if err != nil {
		return nil, err
	}
	go server.Serve()
	return d, server.WaitMount()
}

// unmount takes the mount away even while files on it are open; they fail from then on.
func unmount(at string) error { return syscall.Unmount(at, syscall.MNT_DETACH) }

// state is what commands act on.
type state struct {
	at   string
	disk *disk
	// What the cut left, until it is mounted.
	left *inode
}

func (s *state) obey(line string) (string, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 1 && words[0] == "stats":
		s.disk.mutex.Lock()
		defer s.disk.mutex.Unlock()
		return fmt.Sprintf("%d %d", s.disk.syncs, s.disk.written), nil
	case len(words) > 0 && words[0] == "cut" && s.left == nil:
		var chance *rand.Rand
		if len(words) == 2 {
			seed, err := strconv.ParseUint(words[1], 10, 64)
			if err != nil {
				return "", err
			}
			chance = rand.New(rand.NewPCG(seed, 0))
		}
		s.left = s.disk.afterCut(chance)
		return "", nil
	case len(words) == 1 && words[0] == "restore" && s.left != nil:
		if err := unmount(s.at); err != nil {
			return "", err
		}
		var err error
		s.disk, err = mount(s.left, s.at)
		s.left = nil
		return "", err
	default:
		return "", fmt.Errorf("not now, or unknown: %q", line)
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: lossy-disk <mount point>")
	}
	s := state{at: os.Args[1]}
	var err error
	if s.disk, err = mount(emptyRoot(), s.at); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := s.obey(lines.Text())
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Println(strings.TrimSpace("ok " + answer))
	}
	if err := unmount(s.at); err != nil {
		log.Fatal(err)
	}
}
