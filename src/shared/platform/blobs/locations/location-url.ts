import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { addressingOf } from '../../config/s3-addressing.ts';
import { OperatorError } from '../../errors/errors.ts';
import type { BlobStoreConfig } from '../blob-stores.ts';

export class LocationError extends OperatorError {
  override readonly name = 'LocationError';
}

const timeoutMs = 30_000;

/** Does not repeat the credentials. */
const credentialsRefused =
  'The URL of the bucket has credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead';

/** Credentials in a URL would appear in logs, the audit log and plans. */
function hasCredentials(location: string): boolean {
  const url = URL.parse(location);
  // A secret key may contain a slash. The text before it is then no valid port, or it is one, or it is empty.
  if (/^[a-z0-9]+:\/\/[^/?#]*:/i.test(location)) return true;
  if (url === null) return location.includes('@');
  const { password, searchParams, username } = url;
  return username !== '' || password !== '' || searchParams.get('endpoint')?.includes('@') === true;
}

export function parseBucketUrl(location: string): URL {
  if (hasCredentials(location)) throw new LocationError(credentialsRefused);
  const url = URL.parse(location);
  if (url === null) throw new LocationError('The URL of the bucket is not valid: s3://bucket/prefix');
  return url;
}

/**
 * Takes a folder, or `s3://bucket/prefix`, by default with the endpoint and region of the blob store in the settings. `?endpoint=`,
 * `?region=` and `?path-style=` replace them; `?profile=` takes the credentials from this profile of the AWS files.
 */
export function parseLocation(location: string, own: Config['blobs']): BlobStoreConfig {
  if (!location.startsWith('s3://')) {
    if (/^[a-z0-9+.-]+:\/\//i.test(location))
      throw new LocationError(`${location} is neither a folder nor s3://bucket/prefix`);
    return { kind: 'files', directory: path.resolve(location) };
  }
  const url = parseBucketUrl(location);
  if (url.hostname === '') throw new LocationError(`${location} names no bucket: s3://bucket/prefix`);
  const like = own.kind === 's3' ? own : null;
  const prefix = url.pathname.replace(/^\/|\/$/g, '');
  const { searchParams: options } = url;
  const named = options.get('endpoint');
  const addressing = named === null && like ? like : addressingOf(url.hostname, named);
  const profile = options.get('profile');
  return {
    ...{ kind: 's3', bucket: url.hostname, endpoint: addressing.endpoint, prefix: prefix === '' ? '' : `${prefix}/` },
    region: options.get('region') ?? like?.region ?? 'us-east-1',
    forcePathStyle: options.has('path-style') ? options.get('path-style') === 'true' : addressing.forcePathStyle,
    requestTimeoutMs: like?.requestTimeoutMs ?? timeoutMs,
    ...(profile === null ? {} : { profile }),
  };
}

/** `parseLocation` reads the same location, whatever the settings are. */
export function formatLocation(config: BlobStoreConfig): string {
  if (config.kind === 'files') return path.resolve(config.directory);
  const url = new URL(`s3://${config.bucket}/${config.prefix ?? ''}`);
  const { endpoint, forcePathStyle, profile, region } = config;
  if (endpoint) url.searchParams.set('endpoint', endpoint);
  url.searchParams.set('region', region);
  url.searchParams.set('path-style', String(forcePathStyle));
  if (profile) url.searchParams.set('profile', profile);
  return url.href;
}
