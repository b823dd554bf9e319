import { homedir } from 'node:os';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { addressingOf } from '../config/s3-addressing.ts';
import { FileFolder } from './file-folder.ts';
import type { Folder } from './folder.ts';
import { LocationError, parseBucketUrl } from './locations/location-url.ts';

/** Defaults for a location that omits them. */
export interface BucketDefaults {
  readonly region: string;
  readonly endpoint: string | null;
  readonly forcePathStyle: boolean;
  readonly requestTimeoutMs: number;
}

export function bucketDefaults({ blobs }: Pick<Config, 'blobs'>): BucketDefaults {
  if (blobs.kind === 's3') return blobs;
  return { region: 'us-east-1', endpoint: null, forcePathStyle: false, requestTimeoutMs: 30_000 };
}

/**
 * Takes `file://DIR`, a path, or `s3://BUCKET/PREFIX`. Interprets `?region=`, `?endpoint=` and `?s3ForcePathStyle=true` like the CLI. Sends
 * nothing.
 */
export async function openFolder(location: string, defaults: BucketDefaults): Promise<Folder> {
  const scheme = /^([a-z0-9+.-]+):\/\//i.exec(location)?.[1]?.toLowerCase() ?? 'file';
  if (scheme === 'file') return new FileFolder(directoryOf(location));
  if (scheme !== 's3')
    throw new LocationError(
      `${location} is neither file://DIR nor s3://BUCKET/PREFIX: copy the files to one of these first`,
    );
  const url = parseBucketUrl(location);
  if (url.hostname === '') throw new LocationError(`${location} names no bucket: s3://BUCKET/PREFIX`);
  const prefix = decoded(location, url.pathname).replace(/^\/+|\/+$/g, '');
  const { searchParams } = url;
  const given = searchParams.get('endpoint');
  const named = given === null || /^https?:\/\//.test(given) ? given : `https://${given}`;
  const addressing = named === null ? defaults : addressingOf(url.hostname, named);
  const pathStyle = searchParams.get('s3ForcePathStyle') ?? searchParams.get('use_path_style');
  // The AWS SDK costs startup time and memory.
  const { S3Folder } = await import('./s3-folder.ts');
  return new S3Folder({
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region: searchParams.get('region') ?? defaults.region,
    endpoint: addressing.endpoint,
    forcePathStyle: pathStyle === null ? addressing.forcePathStyle : pathStyle === 'true',
    requestTimeoutMs: defaults.requestTimeoutMs,
  });
}

function directoryOf(location: string): string {
  const [, url] = /^file:\/\/(.*)$/is.exec(location) ?? [];
  const text = url === undefined ? location : url.replace(/[?#].*$/s, '');
  if (text.startsWith('~')) return path.join(homedir(), text.slice(1));
  return path.resolve(url === undefined ? text : decoded(location, text));
}

function decoded(location: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new LocationError(`${location} has a % that begins no escape: write %25`, { cause: error });
  }
}
