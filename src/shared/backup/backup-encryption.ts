import { createHash } from 'node:crypto';
import { BackupError } from './backup-error.ts';

/** Lists of blobs and the head of the manifest stay readable. Without recipients, nothing is encrypted. */
export interface BackupEncryption {
  readonly recipients: readonly string[];
  encrypt(body: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
}

/** Throws BackupError for bytes that were changed or are for another recipient. */
export type Decrypt = (body: AsyncIterable<Buffer>) => AsyncIterable<Buffer>;

export const noEncryption: BackupEncryption = { recipients: [], encrypt: (body) => body };

export async function encryptToRecipients(recipients: readonly string[]): Promise<BackupEncryption> {
  if (recipients.length === 0) return noEncryption;
  // Few processes make encrypted backups.
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient);
    } catch (error) {
      throw new BackupError(`${recipient} is not an age recipient (age1…)`, { cause: error });
    }
  }
  return {
    recipients: recipients.toSorted(),
    encrypt: async function* (body) {
      for await (const chunk of await encrypter.encrypt(streamOf(body))) yield bufferOf(chunk);
    },
  };
}

/** Takes the text of an age identity file. */
export async function decryptWithIdentities(identityFile: string): Promise<Decrypt> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  const lines = identityFile.split('\n').map((line) => line.trim());
  const identities = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (identities.length === 0) throw new BackupError('The identity file has no identity (AGE-SECRET-KEY-1…)');
  for (const identity of identities) {
    try {
      decrypter.addIdentity(identity);
    } catch (error) {
      throw new BackupError('The identity file has a line that is not an identity (AGE-SECRET-KEY-1…)', {
        cause: error,
      });
    }
  }
  return async function* (body) {
    try {
      for await (const chunk of await decrypter.decrypt(streamOf(body))) yield bufferOf(chunk);
    } catch (error) {
      throw new BackupError(`It cannot be decrypted: ${(error as Error).message}`, { cause: error });
    }
  };
}

/** Differs by recipients: they cannot use copies encrypted to others. */
export function blobPrefix(recipients: readonly string[]): string {
  if (recipients.length === 0) return 'blobs/';
  return `blobs/age-${createHash('sha256').update(recipients.join('\n')).digest('hex').slice(0, 16)}/`;
}

function streamOf(body: AsyncIterable<Buffer>): ReadableStream<Uint8Array> {
  return ReadableStream.from(body) as ReadableStream<Uint8Array>;
}

function bufferOf({ buffer, byteLength, byteOffset }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
