package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
	"golang.org/x/sys/unix"
)

// syncedFiles is versitygw's store on files, made durable. A write to an object is answered when its data, its extended
// attributes and every folder on the way to it are on disk. Data is synced before it gets its name, so a name never leads
// to a torn object. What Holdfast does not use (tags, ACLs, policies, versions) is left as it was.
//
// Paths are relative to the store's folder, which posix.New made the working directory.
type syncedFiles struct {
	*posix.Posix
}

func (s *syncedFiles) CreateBucket(ctx context.Context, input *s3.CreateBucketInput, acl []byte) error {
	err := s.Posix.CreateBucket(ctx, input, acl)
	// Also when it is there: whoever made it may have died before it was synced.
	if syncErr := syncAll(*input.Bucket, "."); err == nil {
		return syncErr
	}
	return err
}

func (s *syncedFiles) DeleteBucket(ctx context.Context, bucket string) error {
	if err := s.Posix.DeleteBucket(ctx, bucket); err != nil {
		return err
	}
	return syncAll(".")
}

func (s *syncedFiles) PutObject(ctx context.Context, input s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	output, err := s.Posix.PutObjectWithPostFunc(ctx, input, (*os.File).Sync)
	if err != nil {
		return output, err
	}
	return output, syncObject(*input.Bucket, *input.Key)
}

func (s *syncedFiles) CopyObject(ctx context.Context, input s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	output, err := s.Posix.CopyObject(ctx, input)
	if err != nil {
		return output, err
	}
	return output, syncObject(*input.Bucket, *input.Key)
}

// UploadPart syncs, because a client may end after a power cut the upload that it began before. A part whose name was
// lost is missed then; one whose data was lost would not be.
func (s *syncedFiles) UploadPart(ctx context.Context, input *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	return s.Posix.UploadPartWithPostFunc(ctx, input, (*os.File).Sync)
}

// UploadPartCopy is refused: versitygw gives no hold on the part's file before it has a name.
func (s *syncedFiles) UploadPartCopy(context.Context, *s3.UploadPartCopyInput) (s3response.CopyPartResult, error) {
	return s3response.CopyPartResult{}, s3err.GetAPIError(s3err.ErrNotImplemented)
}

func (s *syncedFiles) CompleteMultipartUpload(ctx context.Context, input *s3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	missing := 0
	if input.MultipartUpload != nil {
		missing = len(input.MultipartUpload.Parts)
	}
	appendPart := func(from, to *os.File) (idempotent bool, err error) {
		if _, err := io.Copy(to, from); err != nil {
			return true, err
		}
		if missing--; missing > 0 {
			return true, nil
		}
		return true, to.Sync()
	}
	result, version, err := s.Posix.CompleteMultipartUploadWithCopy(ctx, input, appendPart)
	if err != nil {
		return result, version, err
	}
	// Fails when another request is still at work on the same upload, which versitygw takes for success.
	return result, version, syncObject(*input.Bucket, *input.Key)
}

func (s *syncedFiles) DeleteObject(ctx context.Context, input *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	output, err := s.Posix.DeleteObject(ctx, input)
	if err != nil {
		return output, err
	}
	return output, syncParents(*input.Bucket, *input.Key)
}

func (s *syncedFiles) DeleteObjects(ctx context.Context, input *s3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	result, err := s.Posix.DeleteObjects(ctx, input)
	if err != nil || input.Delete == nil {
		return result, err
	}
	for _, object := range input.Delete.Objects {
		if err := syncParents(*input.Bucket, *object.Key); err != nil {
			return result, err
		}
	}
	return result, nil
}

// syncObject makes a new object durable, and takes it away when that fails: the kernel reports a lost write only once, so
// that a second attempt on the same file would seem to succeed.
func syncObject(bucket, key string) error {
	path := filepath.Join(bucket, key)
	err := syncAll(path)
	if err == nil {
		err = syncParents(bucket, key)
	}
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// syncParents syncs the folders from that of the object up to the bucket. One that is gone was empty.
func syncParents(bucket, key string) error {
	for folder := filepath.Dir(filepath.Join(bucket, key)); ; folder = filepath.Dir(folder) {
		if err := syncAll(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if folder == bucket || folder == "." {
			return nil
		}
	}
}

// syncAll calls fsync on files or folders.
func syncAll(paths ...string) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		err = file.Sync()
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func syncFileSystem(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Syncfs(int(file.Fd()))
}
