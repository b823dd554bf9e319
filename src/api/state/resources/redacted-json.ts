import { createHash } from 'node:crypto';
import { replaceRanges } from '../../../shared/platform/json/member-edits.ts';
import { denseSliceBytes, scanInSlices } from '../../../shared/platform/slices/slices.ts';
import { cutDeep } from '../../platform/http/cut-deep.ts';
import { hasNoSecrets, type SecretSpan, secretScanner } from './secret-values.ts';

const redacted = Buffer.from('{"[secret]":true}');

/** The form in which the CLI writes a secret, for texts that are read as a state. */
const encryptedSecret = Buffer.from(
  '{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"[secret]"}',
);

/** Takes up to a few MiB. `[secret]` takes the place of each ciphertext. All other bytes are kept. Throws JsonSyntaxError. */
export async function redactedText(text: Buffer): Promise<Buffer> {
  const { scanner, secrets } = secretScanner(text);
  await scanInSlices(scanner, text, denseSliceBytes);
  scanner.end();
  return replaceRanges(
    text,
    secrets.map(({ end, start }) => ({ start, end, by: encryptedSecret })),
  );
}

/** Like `listSecrets`, for values of a few MiB, which may contain very many secrets. */
export async function listSecretsInSlices(text: Buffer): Promise<SecretSpan[]> {
  if (hasNoSecrets(text)) return [];
  const { scanner, secrets } = secretScanner(text);
  await scanInSlices(scanner, text, denseSliceBytes);
  scanner.end();
  return secrets;
}

/** A value above this multiple of the shown size hardly ever consists of secrets alone, and is not scanned. */
const lookedAt = 4;

/**
 * The value for display: secrets become `{"[secret]": true}`, a value above `maxBytes` `{"[large]": bytes}`, and deeply nested parts
 * `{"[deep]": bytes}`. Throws JsonSyntaxError.
 */
export async function redactedJsonInSlices(text: Buffer | null, maxBytes: number): Promise<unknown> {
  if (text === null) return null;
  return text.length > lookedAt * maxBytes ? large(text) : redactValue(text, await listSecretsInSlices(text), maxBytes);
}

/** The digest of the view that `redactedJsonInSlices` gives, without secrets. Null for a value that it does not show. */
export async function redactedDigest(text: Buffer | null, maxBytes: number): Promise<string | null> {
  if (text === null || text.length > lookedAt * maxBytes) return null;
  const digest = createHash('sha256');
  let at = 0;
  for (const { end, start } of await listSecretsInSlices(text)) {
    digest.update(text.subarray(at, start)).update(redacted);
    at = end;
  }
  return digest.update(text.subarray(at)).digest('base64url');
}

function redactValue(text: Buffer, secrets: readonly SecretSpan[], maxBytes: number): unknown {
  const shown =
    secrets.length === 0
      ? text
      : replaceRanges(
          text,
          secrets.map(({ end, start }) => ({ start, end, by: redacted })),
        );
  return shown.length > maxBytes ? large(text) : (JSON.parse(cutDeep(shown).toString('utf8')) as unknown);
}

function large({ length }: Buffer): unknown {
  return { '[large]': length };
}
