package main

import (
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const fallocKeepSize, fallocPunchHole, fallocZeroRange = 1, 2, 16

func (d *disk) Open(_ <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		if input.Flags&syscall.O_TRUNC != 0 {
			node.truncate(0)
		}
		return 0
	})
}

func (d *disk) Read(_ <-chan struct{}, input *fuse.ReadIn, buf []byte) (result fuse.ReadResult, status fuse.Status) {
	status = d.with(input.NodeId, func(node *inode) syscall.Errno {
		result = fuse.ReadResultData(node.read(buf[:input.Size], int64(input.Offset)))
		return 0
	})
	return result, status
}

func (d *disk) Write(_ <-chan struct{}, input *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return uint32(len(data)), d.with(input.NodeId, func(node *inode) syscall.Errno {
		node.write(data, int64(input.Offset))
		d.written += uint64(len(data))
		if input.Flags&syscall.O_DSYNC != 0 {
			node.sync()
			d.syncs++
		}
		return 0
	})
}

func (d *disk) Fallocate(_ <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		end := int64(input.Offset + input.Length)
		if input.Mode&^(fallocKeepSize|fallocPunchHole|fallocZeroRange) != 0 {
			return syscall.EOPNOTSUPP
		}
		if input.Mode&(fallocPunchHole|fallocZeroRange) != 0 {
			node.zero(int64(input.Offset), min(end, node.current.size))
		}
		if input.Mode&fallocKeepSize == 0 {
			node.current.size = max(node.current.size, end)
		}
		return 0
	})
}

func (d *disk) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (d *disk) Fsync(_ <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		node.sync()
		d.syncs++
		return 0
	})
}

func (d *disk) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return d.Fsync(cancel, input)
}

func (d *disk) GetXAttr(_ <-chan struct{}, header *fuse.InHeader, name string, dest []byte) (size uint32, status fuse.Status) {
	status = d.with(header.NodeId, func(node *inode) syscall.Errno {
		value, there := node.current.xattrs[name]
		if !there {
			return syscall.ENODATA
		}
		return give(value, dest, &size)
	})
	return size, status
}

func (d *disk) ListXAttr(_ <-chan struct{}, header *fuse.InHeader, dest []byte) (size uint32, status fuse.Status) {
	status = d.with(header.NodeId, func(node *inode) syscall.Errno {
		names := slices.Sorted(maps.Keys(node.current.xattrs))
		if len(names) == 0 {
			return 0
		}
		return give([]byte(strings.Join(names, "\x00")+"\x00"), dest, &size)
	})
	return size, status
}

// give copies value when there is room; asked with none, it tells the size only.
func give(value, dest []byte, size *uint32) syscall.Errno {
	*size = uint32(len(value))
	if len(dest) > 0 && len(dest) < len(value) {
		return syscall.ERANGE
	}
	copy(dest, value)
	return 0
}

func (d *disk) SetXAttr(_ <-chan struct{}, input *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	return d.with(input.NodeId, func(node *inode) syscall.Errno {
		_, there := node.current.xattrs[name]
		switch {
		case there && input.Flags&1 != 0:
			return syscall.EEXIST
		case !there && input.Flags&2 != 0:
			return syscall.ENODATA
		}
		node.current.xattrs[name] = slices.Clone(data)
		return 0
	})
}

func (d *disk) RemoveXAttr(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return d.with(header.NodeId, func(node *inode) syscall.Errno {
		if _, there := node.current.xattrs[name]; !there {
			return syscall.ENODATA
		}
		delete(node.current.xattrs, name)
		return 0
	})
}
