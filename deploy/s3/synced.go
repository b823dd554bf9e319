package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
	"golang.org/x/sys/unix"
)

// syncedFiles is versitygw's store on files, made durable. A write to an object is answered when its data, its extended
// attributes and every folder on the way to it are on disk. Data is counted and synced before it gets its name, so a name
// never leads to a torn object, and a write that fails leaves the object that was there. What Holdfast does not use
// (tags, ACLs, policies, versions) is left as it was.
//
// Paths are relative to the store's folder, which posix.New made the working directory.
type syncedFiles struct {
	*posix.Posix
	// Uploads, by ID, whose object was not made durable. The kernel reports a lost write only once, so that syncing the
	// same file again would seem to succeed.
	doubtful sync.Map
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
	output, err := s.Posix.PutObjectWithPostFunc(ctx, input, storeWhole(input.ContentLength))
	if err == nil {
		err = syncObject(*input.Bucket, *input.Key)
	}
	if err != nil {
		return s3response.PutObjectOutput{}, answerOf(err)
	}
	return output, nil
}

// CopyObject and UploadPartCopy are refused: versitygw gives no hold on the file before it has a name.
func (s *syncedFiles) CopyObject(context.Context, s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	return s3response.CopyObjectOutput{}, s3err.GetAPIError(s3err.ErrNotImplemented)
}

func (s *syncedFiles) UploadPartCopy(context.Context, *s3.UploadPartCopyInput) (s3response.CopyPartResult, error) {
	return s3response.CopyPartResult{}, s3err.GetAPIError(s3err.ErrNotImplemented)
}

// UploadPart syncs, because a client may end after a power cut the upload that it began before. A part whose name was
// lost is missed then; one whose data was lost would not be.
func (s *syncedFiles) UploadPart(ctx context.Context, input *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	output, err := s.Posix.UploadPartWithPostFunc(ctx, input, storeWhole(input.ContentLength))
	if err != nil {
		return nil, answerOf(err)
	}
	return output, nil
}

func (s *syncedFiles) CompleteMultipartUpload(ctx context.Context, input *s3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	if input.UploadId == nil || input.MultipartUpload == nil || len(input.MultipartUpload.Parts) == 0 {
		return s3response.CompleteMultipartUploadResult{}, "", s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	object := assembly{missing: len(input.MultipartUpload.Parts), stop: stop}
	result, version, err := s.Posix.CompleteMultipartUploadWithCopy(ctx, input, object.append)
	if object.err != nil {
		if err == nil {
			_ = os.Remove(filepath.Join(*input.Bucket, *input.Key))
		}
		err = object.err
	}
	if err == nil && !object.isWhole {
		err = s.checkCompleted(input)
	}
	if err == nil {
		if err = syncObject(*input.Bucket, *input.Key); err != nil {
			s.doubtful.Store(*input.UploadId, nil)
		}
	}
	if err != nil {
		return s3response.CompleteMultipartUploadResult{}, "", answerOf(err)
	}
	return result, version, nil
}

// checkCompleted fails unless the object is of this upload. Another request may still be at work on it or may have failed,
// and there may be an older object or none: versitygw takes all that for success.
func (s *syncedFiles) checkCompleted(input *s3.CompleteMultipartUploadInput) error {
	if _, isDoubtful := s.doubtful.Load(*input.UploadId); isDoubtful {
		return errors.New("the object of the upload may not be on disk")
	}
	attribute, err := (meta.XattrMeta{}).RetrieveAttribute(nil, *input.Bucket, *input.Key, "mp-metadata")
	if err != nil {
		return fmt.Errorf("there is no object of the upload: %w", err)
	}
	upload, err := backend.UnmarshalMpUploadMetadata(attribute, false)
	if err != nil {
		return err
	}
	if upload.UploadID != *input.UploadId {
		return errors.New("the object is of another upload")
	}
	return nil
}

// releaseUploads gives the uploads that a killed server was completing their names back. Otherwise they could be neither
// completed nor aborted, and would be listed nowhere.
func releaseUploads() error {
	const suffix = ".inprogress"
	folders, err := filepath.Glob(filepath.Join("*", posix.MetaTmpMultipartDir, "*", "*"+suffix))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		name, _, _ := strings.Cut(filepath.Base(folder), ".")
		if err := os.Rename(folder, filepath.Join(filepath.Dir(folder), name)); err != nil {
			return err
		}
	}
	return nil
}

// assembly is an object that is made of the parts of an upload.
type assembly struct {
	missing int
	bytes   int64
	isWhole bool
	err     error
	stop    context.CancelFunc
}

// append adds a part, and syncs the object after the last one. versitygw drops its error and publishes what there is, so
// the request is stopped too: versitygw looks at that before it publishes.
func (a *assembly) append(from, to *os.File) (isRepeatable bool, err error) {
	if a.err == nil {
		a.err = a.copyPart(from, to)
	}
	if a.err != nil {
		a.stop()
		// Else versitygw copies the rest of the part on its own.
		_ = from.Close()
	}
	return true, a.err
}

func (a *assembly) copyPart(from, to *os.File) error {
	part, err := from.Stat()
	if err != nil {
		return err
	}
	copied, err := io.Copy(to, from)
	if err != nil {
		return err
	}
	a.bytes += copied
	whole, err := to.Stat()
	if err != nil {
		return err
	}
	if copied != part.Size() || whole.Size() != a.bytes {
		return fmt.Errorf("%d of %d bytes of a part were copied, to %d", copied, part.Size(), whole.Size())
	}
	if a.missing--; a.missing > 0 {
		return nil
	}
	if err := to.Sync(); err != nil {
		return err
	}
	a.isWhole = true
	return nil
}

// storeWhole returns the last step before data gets its name. The file's size does not tell how much was written, because
// its space was reserved.
func storeWhole(announced *int64) func(*os.File) error {
	return func(file *os.File) error {
		written, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if announced != nil && written != *announced {
			return s3err.GetAPIError(s3err.ErrIncompleteBody)
		}
		return file.Sync()
	}
}

// answerOf tells the client the cause, where versitygw would call it an internal error.
func answerOf(err error) error {
	var known s3err.S3Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, unix.ENOSPC):
		return s3err.GetAPIError(s3err.ErrNoSpaceLeftOnDevice)
	case errors.Is(err, unix.EDQUOT):
		return s3err.GetAPIError(s3err.ErrQuotaExceeded)
	}
	return err
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

// syncObject makes a new object durable. When that fails the object stays: its data was synced before, and another client
// may have been told that it is stored.
func syncObject(bucket, key string) error {
	path := filepath.Join(bucket, key)
	err := syncAll(path)
	if err == nil {
		err = syncParents(bucket, key)
	}
	if err != nil {
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
