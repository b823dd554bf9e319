import { createHash, createHmac } from 'node:crypto';

/** Address and credentials of an S3 server. */
export interface S3Access {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
}

/** Path-style, without a query, signed with Signature Version 4. Independent of the AWS SDK. */
export async function s3Request(
  access: S3Access,
  method: 'GET' | 'PUT' | 'HEAD' | 'DELETE',
  path: string,
): Promise<Response> {
  const url = new URL(path, access.endpoint);
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const day = time.slice(0, 8);
  const bodyHash = sha256('');
  const signedHeaders = 'host;x-amz-content-sha256;x-amz-date';
  const headers = `host:${url.host}\nx-amz-content-sha256:${bodyHash}\nx-amz-date:${time}\n`;
  const canonical = [method, url.pathname, '', headers, signedHeaders, bodyHash].join('\n');
  const scope = `${day}/${access.region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = [day, access.region, 's3', 'aws4_request'].reduce<Buffer | string>(
    (secret, part) => hmac(secret, part),
    `AWS4${access.secretAccessKey}`,
  );
  const signature = hmac(key, toSign).toString('hex');
  const credential = `${access.accessKeyId}/${scope}`;
  return fetch(url, {
    method,
    headers: {
      'x-amz-content-sha256': bodyHash,
      'x-amz-date': time,
      authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    },
    signal: AbortSignal.timeout(20_000),
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
