import { randomBytes, randomUUID } from 'node:crypto';
import { decryptWithIdentities, encryptToRecipients } from '../../../shared/backup/backup-encryption.ts';
import { TransferError } from '../../../shared/diy/diy-layout.ts';
import { PassphraseCrypter } from '../../../shared/diy/passphrase-crypter.ts';
import { bytesOf } from '../../../shared/platform/bytes/byte-source.ts';
import { decryptWith, encryptWith } from '../../../shared/secrets/key-ring.ts';
import type { EncryptedKey } from './archive-layout.ts';

const keyBytes = 32;

export interface ArchiveProtection {
  readonly recipients: readonly string[];
  readonly passphrase: string | null;
}

export interface ArchiveAccess {
  /** The text of a file of age identities. */
  readonly identities: string | null;
  readonly passphrase: string | null;
}

/** The context is the id of the stack in the archive, so that no secret can be moved to another stack. */
export class ArchiveKey {
  readonly id: string;
  readonly #bytes: Buffer;

  constructor(id: string, bytes: Buffer) {
    this.id = id;
    this.#bytes = bytes;
  }

  encrypt(stackId: string, plaintext: Buffer): string {
    return encryptWith(this.#bytes, plaintext, Buffer.from(stackId)).toString('base64');
  }

  /** Returns null if the secret was encrypted with another key, or for another stack. */
  decrypt(stackId: string, ciphertext: string): Buffer | null {
    return decryptWith(this.#bytes, Buffer.from(ciphertext, 'base64'), Buffer.from(stackId));
  }
}

/**
 * The key of the archive if the passphrase opens it, otherwise a new one. Throws TransferError without protection, or if the archive has
 * another protection.
 */
export async function keyForExport(
  known: readonly EncryptedKey[],
  { passphrase, recipients }: ArchiveProtection,
): Promise<{ readonly key: ArchiveKey; readonly keys: readonly EncryptedKey[] }> {
  if (recipients.length === 0 && passphrase === null)
    throw new TransferError('The secrets need protection: name an age --recipient, or set PULUMI_CONFIG_PASSPHRASE');
  // An import opens every key: a key for other recipients would close the archive to everybody.
  const wanted = new Set(recipients);
  const isForWanted = (key: EncryptedKey): boolean => new Set(key.recipients).symmetricDifference(wanted).size === 0;
  if (!known.every(isForWanted))
    throw new TransferError(
      'The archive is protected in another way: use the same recipients or passphrase, or name another location',
    );
  const found = recipients.length > 0 ? null : (known[0] ?? null);
  if (found !== null) return { key: await openKey(found, { identities: null, passphrase }), keys: known };
  const bytes = randomBytes(keyBytes);
  const encrypted = await encryptKey(bytes, { passphrase, recipients });
  return { key: new ArchiveKey(encrypted.id, bytes), keys: [...known, encrypted] };
}

/** Opens a key of an archive. Throws TransferError. */
export async function openKey(
  { encrypted, id, salt }: EncryptedKey,
  { identities, passphrase }: ArchiveAccess,
): Promise<ArchiveKey> {
  if (salt === null) {
    if (identities === null)
      throw new TransferError('The archive is encrypted to age recipients: name an --identity file');
    const decrypt = await decryptWithIdentities(identities);
    return new ArchiveKey(id, await gather(decrypt(bytesOf(Buffer.from(encrypted, 'base64'))())));
  }
  if (passphrase === null)
    throw new TransferError('The archive is encrypted for a passphrase: set PULUMI_CONFIG_PASSPHRASE');
  const crypter = await PassphraseCrypter.open(passphrase, salt);
  const bytes = crypter?.decrypt(encrypted);
  if (!bytes) throw new TransferError('PULUMI_CONFIG_PASSPHRASE is not the passphrase of the archive');
  return new ArchiveKey(id, bytes);
}

async function encryptKey(bytes: Buffer, { passphrase, recipients }: ArchiveProtection): Promise<EncryptedKey> {
  const id = randomUUID();
  if (recipients.length > 0) {
    const encryption = await encryptToRecipients(recipients);
    const encrypted = (await gather(encryption.encrypt(bytesOf(bytes)()))).toString('base64');
    return { id, recipients: [...encryption.recipients], salt: null, encrypted };
  }
  const crypter = await PassphraseCrypter.create(passphrase ?? '');
  return { id, recipients: [], salt: crypter.salt, encrypted: crypter.encrypt(bytes) };
}

async function gather(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}
