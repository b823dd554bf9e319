// The same on MinIO, which the extra run names in HOLDFAST_TEST_S3.
await import('./cluster-faults.test.ts');

export {};
