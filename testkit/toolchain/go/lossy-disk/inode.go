package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const pageSize = 4096

type page [pageSize]byte

// image is one version of an inode: what programs see, or what a power cut leaves.
type image struct {
	mode, uid, gid uint32
	mtime          time.Time
	size           int64
	pages          map[int64]*page
	xattrs         map[string][]byte
	entries        map[string]*inode
}

// inode has two images. Syncing it makes the second one equal to the first; nothing else does.
//
// This is the strict reading of POSIX: fsync of a file keeps its data, size, attributes and extended attributes, but not
// its name. Names are kept by fsync of the folder, each folder for itself.
type inode struct {
	id      uint64
	links   uint32
	symlink string
	current image
	durable image
	// Pages of current that differ from durable. All others are shared, so a write to one copies it first.
	dirty map[int64]bool
}

func newInode(id uint64, mode, uid, gid uint32) *inode {
	first := image{mode: mode, uid: uid, gid: gid, mtime: time.Now()}
	node := &inode{id: id, current: first, durable: first, dirty: map[int64]bool{}}
	for _, version := range []*image{&node.current, &node.durable} {
		version.pages = map[int64]*page{}
		version.xattrs = map[string][]byte{}
		version.entries = map[string]*inode{}
	}
	return node
}

func (node *inode) isDir() bool { return node.current.mode&syscall.S_IFMT == fuse.S_IFDIR }

// sync makes everything about this inode, and nothing about any other, survive a cut.
func (node *inode) sync() {
	for index := range node.dirty {
		if held := node.current.pages[index]; held != nil {
			node.durable.pages[index] = held
		} else {
			delete(node.durable.pages, index)
		}
	}
	clear(node.dirty)
	pages := node.durable.pages
	node.durable = node.current
	node.durable.pages = pages
	node.durable.xattrs = maps.Clone(node.current.xattrs)
	node.durable.entries = maps.Clone(node.current.entries)
}

func (node *inode) read(into []byte, offset int64) []byte {
	if offset >= node.current.size {
		return nil
	}
	into = into[:min(int64(len(into)), node.current.size-offset)]
	for done := 0; done < len(into); {
		index, start := (offset+int64(done))/pageSize, (offset+int64(done))%pageSize
		part := into[done:min(len(into), done+pageSize-int(start))]
		if held := node.current.pages[index]; held != nil {
			copy(part, held[start:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return into
}

func (node *inode) write(data []byte, offset int64) {
	for done := 0; done < len(data); {
		index, start := (offset+int64(done))/pageSize, (offset+int64(done))%pageSize
		done += copy(node.ownPage(index)[start:], data[done:])
	}
	node.current.size = max(node.current.size, offset+int64(len(data)))
	node.current.mtime = time.Now()
}

func (node *inode) truncate(size int64) {
	if size < node.current.size {
		node.zero(size, node.current.size)
	}
	node.current.size = size
	node.current.mtime = time.Now()
}

func (node *inode) zero(from, to int64) {
	for index := from / pageSize; index*pageSize < to; index++ {
		held := node.current.pages[index]
		if held == nil {
			continue
		}
		start, end := max(from-index*pageSize, 0), min(to-index*pageSize, pageSize)
		if start == 0 && end == pageSize {
			delete(node.current.pages, index)
			node.dirty[index] = true
			continue
		}
		clear(node.ownPage(index)[start:end])
	}
}

// ownPage returns a page that is not shared with the durable image.
func (node *inode) ownPage(index int64) *page {
	held := node.current.pages[index]
	if held != nil && node.dirty[index] {
		return held
	}
	own := new(page)
	if held != nil {
		*own = *held
	}
	node.current.pages[index] = own
	node.dirty[index] = true
	return own
}

// afterCut returns this inode, and all below it, as the power cut leaves them. With a source of chance, each unsynced
// page, size, attribute set and name is kept or lost by itself, as a disk may have written any of them; else all are lost.
func (node *inode) afterCut(chance *rand.Rand, seen map[*inode]*inode) *inode {
	if left := seen[node]; left != nil {
		return left
	}
	kept := func() bool { return chance != nil && chance.IntN(2) == 0 }
	left := newInode(node.id, node.durable.mode, node.durable.uid, node.durable.gid)
	left.symlink = node.symlink
	seen[node] = left
	result := node.durable
	if kept() {
		result = node.current
	}
	result.size = node.durable.size
	if node.current.size != node.durable.size && kept() {
		result.size = node.current.size
	}
	result.pages = maps.Clone(node.durable.pages)
	for _, index := range slices.Sorted(maps.Keys(node.dirty)) {
		if !kept() {
			continue
		}
		if held := node.current.pages[index]; held != nil {
			result.pages[index] = held
		} else {
			delete(result.pages, index)
		}
	}
	result.xattrs = maps.Clone(result.xattrs)
	result.entries = node.entriesAfterCut(chance, kept, seen)
	left.current = result
	size := result.size
	left.current.size = max(size, (slices.Max(append(slices.Collect(maps.Keys(result.pages)), 0))+1)*pageSize)
	left.truncate(size)
	left.current.mtime = result.mtime
	left.durable.pages = maps.Clone(left.current.pages)
	left.sync()
	return left
}

func (node *inode) entriesAfterCut(chance *rand.Rand, kept func() bool, seen map[*inode]*inode) map[string]*inode {
	names := maps.Clone(node.durable.entries)
	maps.Copy(names, node.current.entries)
	entries := map[string]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		entry := node.durable.entries[name]
		if node.current.entries[name] != entry && kept() {
			entry = node.current.entries[name]
		}
		if entry == nil {
			continue
		}
		entries[name] = entry.afterCut(chance, seen)
		entries[name].links++
	}
	return entries
}
