import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createZstdCompress } from 'node:zlib';
import type { Static, TSchema } from 'typebox';
import { decompressed } from '../../../shared/diy/diy-layout.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { bytesOf } from '../../../shared/platform/bytes/byte-source.ts';
import { OperatorError } from '../../../shared/platform/errors/errors.ts';
import { standard } from '../../../shared/platform/schema/standard-schema.ts';
import { inSlices } from '../../../shared/platform/slices/slices.ts';
import { SourceUnavailableError } from '../service-client.ts';
import { type ArchivedFile, Manifest, manifestFile } from './archive-layout.ts';

/** Missing, damaged, or belonging elsewhere. No part of its stack is imported. */
export class ArchiveDamagedError extends SourceUnavailableError {}

/** Maximum size of a file that is read as a whole. */
const maxBytes = 256 * 1024 * 1024;

/** Compressed if the name ends in `.zst`. */
export async function writeArchived(folder: Folder, name: string, body: AsyncIterable<Buffer>): Promise<ArchivedFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  const hashed = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of name.endsWith('.zst') ? compressed(body) : body) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  await folder.write(name, hashed());
  return { name, sha256: hash.digest('hex'), bytes };
}

export function writeJson(folder: Folder, name: string, value: object): Promise<ArchivedFile> {
  return writeArchived(folder, name, bytesOf(Buffer.from(JSON.stringify(value)))());
}

/** The stored bytes of a file. Throws ArchiveDamagedError, at the latest after the last bytes. */
export async function* readStored(folder: Folder, { bytes, name, sha256 }: ArchivedFile): AsyncGenerator<Buffer> {
  const file = await folder.open(name);
  if (file === null) throw new ArchiveDamagedError(`${name} is missing`);
  const hash = createHash('sha256');
  let count = 0;
  for await (const chunk of file) {
    hash.update(chunk);
    count += chunk.length;
    if (count > bytes) throw new ArchiveDamagedError(`${name} is longer than its ${bytes} bytes`);
    yield chunk;
  }
  if (count < bytes) throw new ArchiveDamagedError(`${name} is truncated: ${count} of ${bytes} bytes`);
  if (hash.digest('hex') !== sha256)
    throw new ArchiveDamagedError(`${name} is damaged, or another file: its SHA-256 is not ${sha256}`);
}

/** Throws ArchiveDamagedError, at the latest after the last bytes. */
export async function* readArchived(folder: Folder, file: ArchivedFile): AsyncGenerator<Buffer> {
  const stored = readStored(folder, file);
  try {
    yield* inSlices(file.name.endsWith('.zst') ? decompressed(stored) : stored);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new ArchiveDamagedError(`${file.name} is damaged: ${(error as Error).message}`, { cause: error });
  }
}

/** Reads a document of the archive. Throws ArchiveDamagedError. */
export async function readJson<Schema extends TSchema>(
  folder: Folder,
  file: ArchivedFile,
  schema: Schema,
): Promise<Static<Schema>> {
  return parse(file.name, await textOf(file.name, readArchived(folder, file)), schema);
}

/** A document without a known hash; null if it does not exist. Throws ArchiveDamagedError. */
export async function readUnchecked<Schema extends TSchema>(
  folder: Folder,
  name: string,
  schema: Schema,
): Promise<Static<Schema> | null> {
  const file = await folder.open(name);
  return file && parse(name, await textOf(name, file), schema);
}

/** Returns null if the file does not exist. */
export async function describeStored(folder: Folder, name: string): Promise<ArchivedFile | null> {
  const file = await folder.open(name);
  if (file === null) return null;
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of file) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { name, sha256: hash.digest('hex'), bytes };
}

/** Returns null if the folder is no archive. Throws ArchiveDamagedError. */
export async function readManifest(folder: Folder): Promise<Manifest | null> {
  const manifest = await readUnchecked(folder, manifestFile, Manifest);
  if (manifest === null) return null;
  const { sha256, ...rest } = manifest;
  if (hashOf(rest) !== sha256) throw new ArchiveDamagedError(`${manifestFile} was changed: its SHA-256 does not match`);
  return manifest;
}

export async function writeManifest(folder: Folder, manifest: Omit<Manifest, 'sha256'>): Promise<void> {
  await writeJson(folder, manifestFile, { ...manifest, sha256: hashOf(manifest) });
}

function hashOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

function parse<Schema extends TSchema>(name: string, text: string, schema: Schema): Static<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ArchiveDamagedError(`${name} is damaged: ${(error as Error).message}`, { cause: error });
  }
  const format = (value as { format?: unknown } | null)?.format;
  const checked = standard(schema)['~standard'].validate(value);
  if ('value' in checked) return checked.value;
  const [{ message, path } = { message: '', path: [] }] = checked.issues;
  if (path[0] === 'format' && format !== undefined)
    throw new ArchiveDamagedError(`${name} has format ${String(format)}, which this release does not know`);
  throw new ArchiveDamagedError(`${name} is not a file of an archive: /${path.join('/')} ${message}`);
}

async function textOf(name: string, body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > maxBytes) throw new ArchiveDamagedError(`${name} is larger than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

async function* compressed(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const stream = pipeline(Readable.from(bytes), createZstdCompress(), () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}
