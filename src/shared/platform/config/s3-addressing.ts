export interface S3Addressing {
  readonly endpoint: string | null;
  readonly forcePathStyle: boolean;
}

const aws = /(^|\.)amazonaws\.com(\.cn)?$/i;

/**
 * AWS has the bucket in the host name, other servers in the path, unless the endpoint already names it (`https://bucket.s3.example.com`). A
 * null `endpoint` stands for AWS.
 */
export function addressingOf(bucket: string, endpoint: string | null): S3Addressing {
  if (endpoint === null || !URL.canParse(endpoint)) return { endpoint, forcePathStyle: endpoint !== null };
  const url = new URL(endpoint);
  if (url.protocol === 'https:' && url.hostname.startsWith(`${bucket}.`)) {
    url.hostname = url.hostname.slice(bucket.length + 1);
    return { endpoint: url.href.replace(/\/$/, ''), forcePathStyle: false };
  }
  return { endpoint, forcePathStyle: !aws.test(url.hostname) };
}
