import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { readVariable } from '../../shared/platform/config/cli-login.ts';
import { ConfigurationError } from './configuration-error.ts';
import type { SecretReference } from './document.ts';

const saltBytes = 16;
const hashBytes = 32;

/** Paths are relative to the folder of the document. Throws ConfigurationError, never with the secret. */
export async function readSecret(reference: SecretReference, folder: string): Promise<string> {
  if ('env' in reference) {
    const value = readVariable(reference.env);
    if (!value) throw new ConfigurationError(`the variable ${reference.env} is not set`);
    return value;
  }
  const text = await readFile(path.resolve(folder, reference.file), 'utf8').catch((cause: unknown) => {
    throw new ConfigurationError(`the file ${reference.file} cannot be read`, { cause });
  });
  const value = text.replace(/\r?\n$/, '');
  if (value === '') throw new ConfigurationError(`the file ${reference.file} is empty`);
  return value;
}

/** A later run recognizes another secret by this salted hash. Slow, because secrets may be short. */
export function digestSecret(secret: string, salt = randomBytes(saltBytes)): string {
  return `scrypt:${salt.toString('base64url')}:${scryptSync(secret, salt, hashBytes).toString('base64url')}`;
}

export function isSecretOf(digest: string, secret: string): boolean {
  const salt = Buffer.from(digest.split(':')[1] ?? '', 'base64url');
  const [one, other] = [Buffer.from(digest), Buffer.from(digestSecret(secret, salt))];
  return one.length === other.length && timingSafeEqual(one, other);
}
