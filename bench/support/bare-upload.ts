import { S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import type { Cluster } from '../../testkit/cluster.ts';

/** Seconds of `atOnce` concurrent multipart uploads to the cluster's S3 server. */
export async function bareUploads(cluster: Cluster, bytes: Buffer, atOnce: number): Promise<number> {
  const { accessKeyId, bucket, endpoint, region, secretAccessKey } = cluster.s3Access;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  const began = performance.now();
  try {
    await Promise.all(
      Array.from({ length: atOnce }, (_, at) =>
        new Upload({ client, params: { Bucket: bucket, Key: `bench/bare-${at}`, Body: bytes } }).done(),
      ),
    );
    return (performance.now() - began) / 1000;
  } finally {
    client.destroy();
  }
}
