package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const rootID = 1

// What the kernel may remember: every change comes through it.
const kernelCaches = time.Hour

// disk is a file system in memory that forgets what was not synced. It is one life, from a mount to a power cut.
type disk struct {
	fuse.RawFileSystem
	mutex  sync.Mutex
	cut    bool
	nodes  map[uint64]*inode
	lastID uint64
	// Calls of fsync and fdatasync, and bytes written, since the mount.
	syncs, written uint64
}

func newDisk(root *inode) *disk {
	d := &disk{RawFileSystem: fuse.NewDefaultRawFileSystem(), nodes: map[uint64]*inode{}}
	d.adopt(root)
	return d
}

func emptyRoot() *inode { return newInode(rootID, fuse.S_IFDIR|0o755, 0, 0) }

func (d *disk) adopt(node *inode) {
	d.nodes[node.id] = node
	d.lastID = max(d.lastID, node.id)
	for _, entry := range node.current.entries {
		d.adopt(entry)
	}
}

// afterCut ends this life: every call fails from now on. Returns the root that the next one begins with.
func (d *disk) afterCut(chance *rand.Rand) *inode {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.cut = true
	return d.nodes[rootID].afterCut(chance, map[*inode]*inode{})
}

// with runs work on a node, alone; after the cut it fails.
func (d *disk) with(id uint64, work func(node *inode) syscall.Errno) fuse.Status {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.cut {
		return fuse.EIO
	}
	node := d.nodes[id]
	if node == nil {
		return fuse.Status(syscall.ESTALE)
	}
	return fuse.Status(work(node))
}

// Forget frees what no name and no open file leads to; a folder's durable image may still hold it.
func (d *disk) Forget(id, _ uint64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if node := d.nodes[id]; node != nil && node.links == 0 && id != rootID {
		delete(d.nodes, id)
	}
}

func (d *disk) String() string { return "lossy-disk" }

func fillAttr(node *inode, out *fuse.Attr) {
	out.Ino, out.Size, out.Blocks, out.Blksize = node.id, uint64(node.current.size), uint64(node.current.size+511)/512, pageSize
	out.Mode, out.Uid, out.Gid, out.Nlink = node.current.mode, node.current.uid, node.current.gid, node.links
	if node.isDir() {
		out.Nlink = 2
	}
	out.SetTimes(&node.current.mtime, &node.current.mtime, &node.current.mtime)
}

func fillEntry(node *inode, out *fuse.EntryOut) {
	out.NodeId, out.Generation = node.id, 1
	out.SetEntryTimeout(kernelCaches)
	out.SetAttrTimeout(kernelCaches)
	fillAttr(node, &out.Attr)
}

func (d *disk) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return d.with(header.NodeId, func(folder *inode) syscall.Errno {
		node := folder.current.entries[name]
		if node == nil {
			return syscall.ENOENT
		}
		fillEntry(node, out)
		return 0
	})
}

func (d *disk) GetAttr(_ <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		out.SetTimeout(kernelCaches)
		fillAttr(node, &out.Attr)
		return 0
	})
}

func (d *disk) SetAttr(_ <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		if mode, ok := input.GetMode(); ok {
			node.current.mode = node.current.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
		}
		if uid, ok := input.GetUID(); ok {
			node.current.uid = uid
		}
		if gid, ok := input.GetGID(); ok {
			node.current.gid = gid
		}
		if size, ok := input.GetSize(); ok {
			node.truncate(int64(size))
		}
		if mtime, ok := input.GetMTime(); ok {
			node.current.mtime = mtime
		}
		out.SetTimeout(kernelCaches)
		fillAttr(node, &out.Attr)
		return 0
	})
}

// make puts a new inode into a folder; without a name it stays outside until it is linked.
func (d *disk) make(header *fuse.InHeader, name string, mode uint32, out *fuse.EntryOut) fuse.Status {
	return d.with(header.NodeId, func(folder *inode) syscall.Errno {
		if folder.current.entries[name] != nil {
			return syscall.EEXIST
		}
		d.lastID++
		node := newInode(d.lastID, mode, header.Uid, header.Gid)
		d.nodes[node.id] = node
		if name != "" {
			node.links = 1
			folder.current.entries[name] = node
			folder.current.mtime = time.Now()
		}
		fillEntry(node, out)
		return 0
	})
}

func (d *disk) Mknod(_ <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return d.make(&input.InHeader, name, input.Mode, out)
}

func (d *disk) Mkdir(_ <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return d.make(&input.InHeader, name, input.Mode|fuse.S_IFDIR, out)
}

func (d *disk) Create(_ <-chan struct{}, input *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return d.make(&input.InHeader, name, input.Mode|fuse.S_IFREG, &out.EntryOut)
}

func (d *disk) Tmpfile(_ <-chan struct{}, input *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	return d.make(&input.InHeader, "", input.Mode|fuse.S_IFREG, &out.EntryOut)
}

func (d *disk) Symlink(_ <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	status := d.make(header, name, fuse.S_IFLNK|0o777, out)
	if !status.Ok() {
		return status
	}
	return d.with(out.NodeId, func(node *inode) syscall.Errno {
		node.symlink = target
		return 0
	})
}

func (d *disk) Readlink(_ <-chan struct{}, header *fuse.InHeader) (target []byte, status fuse.Status) {
	status = d.with(header.NodeId, func(node *inode) syscall.Errno {
		target = []byte(node.symlink)
		return 0
	})
	return target, status
}

func (d *disk) Link(_ <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return d.with(input.NodeId, func(folder *inode) syscall.Errno {
		if folder.current.entries[name] != nil {
			return syscall.EEXIST
		}
		node := d.nodes[input.Oldnodeid]
		node.links++
		folder.current.entries[name] = node
		fillEntry(node, out)
		return 0
	})
}

func (d *disk) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return d.with(header.NodeId, func(folder *inode) syscall.Errno {
		node := folder.current.entries[name]
		if node == nil {
			return syscall.ENOENT
		}
		node.links--
		delete(folder.current.entries, name)
		return 0
	})
}

func (d *disk) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	status := d.with(header.NodeId, func(folder *inode) syscall.Errno {
		if node := folder.current.entries[name]; node != nil && len(node.current.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		return 0
	})
	if !status.Ok() {
		return status
	}
	return d.Unlink(cancel, header, name)
}

func (d *disk) Rename(_ <-chan struct{}, input *fuse.RenameIn, oldName, newName string) fuse.Status {
	return d.with(input.NodeId, func(from *inode) syscall.Errno {
		to := d.nodes[input.Newdir]
		node, replaced := from.current.entries[oldName], to.current.entries[newName]
		switch {
		case node == nil:
			return syscall.ENOENT
		case input.Flags&^1 != 0:
			return syscall.EINVAL
		case replaced != nil && input.Flags == 1:
			return syscall.EEXIST
		case replaced != nil && len(replaced.current.entries) > 0:
			return syscall.ENOTEMPTY
		}
		if replaced == node {
			return 0
		}
		if replaced != nil {
			replaced.links--
		}
		delete(from.current.entries, oldName)
		to.current.entries[newName] = node
		return 0
	})
}

func (d *disk) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.ENOSYS }

func (d *disk) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const blocks = 64 << 30 / pageSize
	*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: 1 << 20, Ffree: 1 << 20, Bsize: pageSize, NameLen: 255, Frsize: pageSize}
	return fuse.OK
}

func (d *disk) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (d *disk) ReadDir(_ <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return d.with(input.NodeId, func(folder *inode) syscall.Errno {
		// The offset is the number of the next entry. Inodes never get another number, so their order stays when some go.
		children := slices.SortedFunc(maps.Keys(folder.current.entries), func(a, b string) int {
			return int(folder.current.entries[a].id) - int(folder.current.entries[b].id)
		})
		for _, name := range children {
			node := folder.current.entries[name]
			if node.id <= input.Offset {
				continue
			}
			if !out.AddDirEntry(fuse.DirEntry{Mode: node.current.mode, Name: name, Ino: node.id, Off: node.id}) {
				break
			}
		}
		return 0
	})
}
