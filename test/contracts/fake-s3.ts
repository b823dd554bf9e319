import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import type { S3Options } from '../../src/shared/platform/blobs/s3-client.ts';

/** The kind of S3 request, such as `UploadPart`. */
export type Operation =
  | 'Put'
  | 'Create'
  | 'Part'
  | 'Retention'
  | 'Complete'
  | 'GiveUp'
  | 'Get'
  | 'Head'
  | 'Delete'
  | 'List'
  | 'Bucket';

export type Answer = (
  response: ServerResponse,
  operation: Operation,
  request: IncomingMessage,
  body: Buffer,
) => void | Promise<void>;

export interface FakeS3 {
  readonly store: S3BlobStore;
  readonly url: string;
  /** Every complete request, in order. */
  readonly operations: Operation[];
  close(): Promise<void>;
}

/** An S3 server that responds with `answer` once the request is complete, and a store that uses it. */
export async function startFakeS3(answer: Answer, options: Partial<S3Options> = {}): Promise<FakeS3> {
  const operations: Operation[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const operation = operationOf(request);
      operations.push(operation);
      void Promise.resolve(answer(response, operation, request, Buffer.concat(chunks))).catch((error: unknown) =>
        response.destroy(error as Error),
      );
    });
  });
  // The client does not retry: an idle connection must not be closed just when it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const store = new S3BlobStore({
    endpoint: url,
    bucket: 'blobs',
    region: 'us-east-1',
    forcePathStyle: true,
    accessKeyId: 'key',
    secretAccessKey: 'secret',
    requestTimeoutMs: 60_000,
    connectTimeoutMs: 60_000,
    maxAttempts: 1,
    ...options,
  });
  return {
    store,
    url,
    operations,
    async close() {
      await store.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function operationOf({ method, url = '' }: IncomingMessage): Operation {
  const { pathname, searchParams: query } = new URL(url, 'http://fake');
  const onBucket = pathname === '/blobs' || pathname === '/blobs/';
  if (method === 'PUT' && query.has('retention')) return 'Retention';
  if (method === 'PUT') return onBucket ? 'Bucket' : query.has('partNumber') ? 'Part' : 'Put';
  if (method === 'POST') return query.has('uploads') ? 'Create' : 'Complete';
  if (method === 'DELETE') return query.has('uploadId') ? 'GiveUp' : 'Delete';
  if (method === 'HEAD') return onBucket ? 'Bucket' : 'Head';
  return onBucket ? 'List' : 'Get';
}

/** Answers with S3's error `code`, without a body to HEAD. */
export function sendError(response: ServerResponse, status: number, code: string): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>told so</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml' }).end(response.req.method === 'HEAD' ? '' : body);
}

/** Answers a part of a put like a working server, which then says that it keeps `keptBytes`. */
export function sendPutAnswer(response: ServerResponse, operation: Operation, keptBytes = 6 * 1024 * 1024): void {
  const inside = '<Bucket>blobs</Bucket><Key>k</Key>';
  if (operation === 'Create') {
    response.end(`<InitiateMultipartUploadResult>${inside}<UploadId>u</UploadId></InitiateMultipartUploadResult>`);
  } else if (operation === 'Complete') {
    response.end(`<CompleteMultipartUploadResult>${inside}<ETag>"e"</ETag></CompleteMultipartUploadResult>`);
  } else if (operation === 'Head') {
    response.writeHead(200, { etag: '"e"', 'content-length': keptBytes }).end();
  } else {
    response.writeHead(operation === 'GiveUp' || operation === 'Delete' ? 204 : 200, { etag: '"e"' }).end();
  }
}
