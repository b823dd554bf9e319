import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import {
  type Answer,
  type FakeS3,
  type Operation,
  sendError,
  sendPutAnswer,
  startFakeS3,
} from '../contracts/fake-s3.ts';

/** Answers one request instead of the server. */
export type Fault = (response: ServerResponse, operation: Operation, stored: Buffer | undefined) => void;

/** Objects are in memory, with one upload of parts for each key at a time. The store makes no retries. */
export interface MemoryS3 extends Pick<FakeS3, 'store' | 'close'> {
  readonly objects: Map<string, Buffer>;
  readonly url: string;
  /** Decides about each request, by its operation, key and headers; the key of a list of uploads is `?uploads`. */
  fault: (operation: Operation, key: string, headers: IncomingHttpHeaders) => Fault | undefined;
}

export async function startMemoryS3(secretAccessKey: string): Promise<MemoryS3> {
  const objects = new Map<string, Buffer>();
  const parts = new Map<string, Buffer[]>();
  const answer: Answer = (response, operation, request, body) => {
    const url = new URL(request.url ?? '/', 'http://fake');
    const isUploads = operation === 'List' && url.searchParams.has('uploads');
    const key = isUploads ? '?uploads' : decodeURIComponent(url.pathname.replace(/^\/blobs\/?/, ''));
    const stored = objects.get(key);
    const fault = s3.fault(operation, key, request.headers);
    if (fault) return fault(response, operation, stored);
    if (operation === 'Put') {
      objects.set(key, body);
      response.writeHead(200, { etag: '"e"' }).end();
    } else if (operation === 'Retention') {
      response.end();
    } else if (['Create', 'Part', 'Complete', 'GiveUp'].includes(operation)) {
      if (operation === 'Create') parts.set(key, []);
      const sent = parts.get(key) ?? [];
      if (operation === 'Part') sent[Number(url.searchParams.get('partNumber')) - 1] = body;
      if (operation === 'Complete') objects.set(key, Buffer.concat(sent));
      sendPutAnswer(response, operation);
    } else if (operation === 'Delete') {
      objects.delete(key);
      response.writeHead(204).end();
    } else if (operation === 'Get' || operation === 'Head') {
      if (!stored) return sendError(response, 404, operation === 'Get' ? 'NoSuchKey' : '');
      const headers = { 'content-length': stored.length, 'last-modified': new Date().toUTCString() };
      response.writeHead(200, headers).end(operation === 'Get' ? stored : undefined);
    } else if (operation === 'List') {
      if (isUploads) {
        response.end('<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>');
        return;
      }
      const [prefix, after] = ['prefix', 'start-after'].map((name) => url.searchParams.get(name) ?? '') as [
        string,
        string,
      ];
      const found = [...objects].filter(([each]) => each.startsWith(prefix) && each > after).sort();
      const rows = found.map(
        ([each, { length }]) =>
          `<Contents><Key>${each}</Key><Size>${length}</Size><LastModified>${new Date().toISOString()}</LastModified></Contents>`,
      );
      response.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${rows.join('')}</ListBucketResult>`);
    } else if (operation === 'Bucket') {
      response.end();
    } else {
      sendError(response, 501, 'NotImplemented');
    }
  };
  const { store, close, url } = await startFakeS3(answer, { secretAccessKey });
  const s3: MemoryS3 = { store, close, objects, url, fault: () => undefined };
  return s3;
}
