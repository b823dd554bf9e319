import { createHash } from 'node:crypto';
import { request } from 'node:http';

export interface Download {
  /** Until the first byte of the body, in ms. */
  readonly firstMs: number;
  readonly totalMs: number;
  /** SHA-256 of the body as it came; null unless it is not encoded. */
  readonly digest: string | null;
}

/** Not decompressed, which costs the load generator little. Throws unless the answer is 200. */
export function download(url: string, token: string, encoding: string): Promise<Download> {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'application/vnd.pulumi+9',
      'accept-encoding': encoding,
      authorization: `token ${token}`,
    };
    const began = performance.now();
    const call = request(url, { headers }, (response) => {
      const hash = encoding === 'identity' ? createHash('sha256') : null;
      let firstMs = Number.NaN;
      response.once('data', () => {
        firstMs = performance.now() - began;
      });
      response.on('data', (chunk: Buffer) => hash?.update(chunk));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
        else resolve({ firstMs, totalMs: performance.now() - began, digest: hash?.digest('hex') ?? null });
      });
    });
    call.on('error', reject);
    call.end();
  });
}
