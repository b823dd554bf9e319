import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { expect, test } from '@jest/globals';
import { createS3Clients } from '../blobs/s3-client.ts';
import { addressingOf } from './s3-addressing.ts';

/** Where a request for an object goes, which the SDK decides. */
async function addressOf(bucket: string, endpoint: string | null): Promise<string> {
  const access = { region: 'eu-west-1', accessKeyId: 'key', secretAccessKey: 'secret' };
  const { requests } = createS3Clients({
    ...{ bucket, ...access, ...addressingOf(bucket, endpoint) },
    requestTimeoutMs: 1,
    maxAttempts: 1,
  });
  let address = '';
  requests.middlewareStack.addRelativeTo(
    () => async (step: { request: unknown }) => {
      const { hostname, path, port, protocol } = step.request as Record<string, string>;
      address = `${protocol}//${hostname}${port ? `:${port}` : ''}${path}`;
      throw new Error('not sent');
    },
    { relation: 'after', toMiddleware: 'awsAuthMiddleware' },
  );
  await requests.send(new HeadObjectCommand({ Bucket: bucket, Key: 'o' })).catch(() => {});
  return address;
}

test.each([
  ['AWS', 'states', null, 'https://states.s3.eu-west-1.amazonaws.com/o'],
  ['a name that no certificate of AWS matches', 'my.states', null, 'https://s3.eu-west-1.amazonaws.com/my.states/o'],
  [
    'AWS by its endpoint',
    'states',
    'https://s3.eu-west-1.amazonaws.com',
    'https://states.s3.eu-west-1.amazonaws.com/o',
  ],
  ['China', 'states', 'https://s3.cn-north-1.amazonaws.com.cn', 'https://states.s3.cn-north-1.amazonaws.com.cn/o'],
  ['another server', 'states', 'http://s3:9000', 'http://s3:9000/states/o'],
  ['an address', 'states', 'http://127.0.0.1:9000', 'http://127.0.0.1:9000/states/o'],
  ['a server that only sounds like AWS', 'states', 'https://notamazonaws.com', 'https://notamazonaws.com/states/o'],
  ['an endpoint that names the bucket', 'states', 'https://states.oss.example.com', 'https://states.oss.example.com/o'],
  ['the same with a port', 'states', 'https://states.oss.example.com:8443', 'https://states.oss.example.com:8443/o'],
  ['a service named as the bucket', 'minio', 'http://minio.storage.svc:9000', 'http://minio.storage.svc:9000/minio/o'],
])('%s', async (_what, bucket, endpoint, address) => expect(await addressOf(bucket, endpoint)).toBe(address));
